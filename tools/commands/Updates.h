//===- Updates.h - which batches make an update, and what it says ---------===//
//
// An artifact whose optimizer accumulates has the program `accumulate`, which
// adds a batch's gradients to sums, beside `step`, which uses them up. One that
// clips by the norm keeps that norm, and the number of updates that it left out
// because the norm was not finite, in states of its own. All ranks of a mesh
// have the same numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_UPDATES_H
#define TANDEM_TOOLS_COMMANDS_UPDATES_H

#include "runtime/model/Model.h"

#include <optional>
#include <string>

namespace tandem::commands {

class Updates {
public:
  /// Begins where the model's states are: a checkpoint may be of the middle of
  /// an accumulation. One update for `batches`; `canSkip` asks for an artifact
  /// whose steps can leave out theirs.
  Status begin(const runtime::Model &model, int64_t batches, bool canSkip);

  /// The same of the stages of this rank, whose updates look at the norm of all
  /// gradients if `hasNorm`.
  Status beginStages(std::span<const runtime::Model> stages, bool hasNorm,
                     bool canSkip);

  /// Runs a batch, with an update where it is the last of its accumulation or
  /// of the pass.
  Status run(runtime::Model &model, std::span<const runtime::Argument> inputs,
             const runtime::Destination &loss, bool endsPass);

  /// Of stages: takes what the last batch did; `norm` is that of its update, if
  /// it had one, by which that was made.
  Status take(std::span<const runtime::Model> stages, bool updated,
              std::optional<double> norm);

  /// Returns whether the last batch left out the update that it had.
  bool wasSkipped() const { return wasSkipped_; }
  /// Returns how many did.
  int64_t skipped() const { return skipped_; }
  /// Returns whether a schedule makes the learning rate.
  bool hasSchedule() const { return !rateName_.empty(); }
  /// Returns the learning rate of the last update, where a schedule makes it.
  std::optional<double> rate() const { return rate_; }
  /// Returns how many batches were added up since the last update.
  int64_t pending() const { return pending_; }
  /// Says that the last step, number `step`, left out its update, and what that
  /// means.
  std::string firstSkipped(int64_t step) const;
  /// The fields of the last batch in the log: `, "grad_norm": 1.5`.
  std::string logFields() const;

private:
  Status read(const runtime::Model &model);
  Status findStates(const runtime::Model &model);
  Status skipNeeds() const;

  std::string program_ = "step"; ///< that a batch with an update runs
  std::string normName_, skippedName_, scaleName_, rateName_;
  std::optional<double> rate_; ///< of the last update, by a schedule
  std::optional<double> norm_; ///< of the last batch, if it had an update
  double counted_ = 0;         ///< by the model, with what was before
  double scale_ = 0;           ///< of the loss, after the last update
  int64_t batches_ = 1, pending_ = 0, skipped_ = 0;
  bool wasSkipped_ = false;
};

} // namespace tandem::commands

#endif
