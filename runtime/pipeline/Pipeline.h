//===- Pipeline.h - a model in stages, trained by several ranks -----------===//
//
// A rank has some of the stages (Schedule.h), each a model of its own with its
// parameters and states: programs `forward` and `backward`; `accumulation`,
// which adds gradients to their sums; and `update`, which uses the mean of the
// sums and of the last gradients, as a single process does that adds up
// gradients of as many batches. All ranks make the same calls. Where ranks
// share a stage, the backward gives each rank's part of a gradient, and the
// update reduces the sum of the parts.
//
// Where the mesh has other axes behind `pipe`, a stage is of several ranks, a
// group, and sharded over them. A rank sends to the rank of the next stage that
// has its place in the group: these make a line.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_PIPELINE_PIPELINE_H
#define TANDEM_RUNTIME_PIPELINE_PIPELINE_H

#include "runtime/comm/Communicator.h"
#include "runtime/model/Model.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::pipeline {

/// Returns how many ranks a model has that `stage` is one of.
int64_t ranksOf(const artifact::Manifest &stage);
/// Returns the numbers of the stages that `rank` of these has.
std::vector<int64_t> stagesOf(const artifact::Manifest &stage, int64_t rank);

class Pipeline {
public:
  /// Takes the models of `stagesOf` this rank, in their order, and gives them
  /// their group. Fails on all ranks, with Usage, where they have stages of
  /// several compilations.
  static Result<Pipeline> make(std::vector<runtime::Model> models,
                               std::shared_ptr<comm::Communicator> world);
  Pipeline(Pipeline &&) noexcept;
  Pipeline &operator=(Pipeline &&) noexcept;
  ~Pipeline();

  std::vector<runtime::Model> &models();
  const std::vector<runtime::Model> &models() const;
  /// All ranks; and those that have this rank's place in their groups, one for
  /// each place along `pipe`.
  comm::Communicator &world() const;
  comm::Communicator &line() const;
  /// True for the first rank of each group.
  bool isFirstOfGroup() const;
  const std::string &lossName() const;
  artifact::DType lossType() const;

  /// Gives the whole model's inputs of a batch; it may be asked more than once,
  /// and what it gives is valid until it is asked again.
  using GiveBatch =
      std::function<Result<std::span<const runtime::Argument>>(int64_t)>;

  /// Sends batches through all stages, and adds up gradients; with `updates`,
  /// updates by their mean and that of earlier calls. `losses` gets that of
  /// each batch, on all ranks. Where the norm of the gradients is looked at,
  /// stages update when all of them have theirs; if it is not finite, no stage
  /// does.
  Status train(int64_t batches, bool updates, const GiveBatch &give,
               std::vector<double> &losses);

  /// True if updates look at the norm of the gradients.
  bool hasNorm() const;
  /// Returns that of the last update, the same on all ranks; nothing before.
  std::optional<double> norm() const;

  /// Returns for how many seconds of the last `train` this rank computed
  /// nothing, but exchanged with ranks of other stages or waited for them. What
  /// it exchanged with its group is not in it.
  double waited() const;

  /// Returns the bytes that this rank had at most: those of its models, and
  /// beside them batches, messages and gradients (PlannedMemory.h).
  int64_t peak() const;

  /// Returns how many batches were at most under way in a stage of this rank.
  int64_t mostLive(int64_t stage) const;

private:
  friend class Forward;
  struct State;
  explicit Pipeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace tandem::pipeline

#endif
