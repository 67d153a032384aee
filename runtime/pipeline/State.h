//===- State.h - what a rank of a pipeline has ----------------------------===//
//
// A batch that is under way in a stage keeps its inputs, what it took from the
// stage before and what it gave, since the backward may read all of these where
// they lie. A stage has at most as many batches under way as there are stages
// from it to the end, so memory is made for the first batches and used again: a
// step allocates nothing after the first of its kind.
// Internal to the pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_PIPELINE_STATE_H
#define TANDEM_RUNTIME_PIPELINE_STATE_H

#include "runtime/pipeline/Facts.h"
#include "runtime/pipeline/Pack.h"
#include "runtime/pipeline/Pipeline.h"
#include "runtime/pipeline/Schedule.h"

#include <chrono>
#include <map>
#include <utility>

namespace tandem::pipeline {

using artifact::Program;
using artifact::Slot;
using runtime::Tensor;
using Tensors = std::vector<Tensor>;

using Account = std::shared_ptr<runtime::MemoryAccount>;

inline Result<Tensor> tensorFor(const Slot &slot, const Account &account) {
  return Tensor::zeros(slot.dtype, slot.shape, account);
}

/// Copies what a rank has of a whole input.
Status takePiece(const Tensor &whole, const comm::Shard &shard, Tensor &to);

/// The messages of a few batches, in no order. A batch has one at most.
class Messages {
public:
  /// Null where there is none.
  std::unique_ptr<Buffer> &of(int64_t batch);
  /// Returns that of a batch, which has one, and forgets it.
  std::unique_ptr<Buffer> take(int64_t batch);

private:
  std::vector<std::pair<int64_t, std::unique_ptr<Buffer>>> all_;
};

/// A batch between its forward and its backward, or the place of one.
struct Flight {
  bool isLive = false;
  runtime::Context context;
  Tensors inputs;
  std::unique_ptr<Buffer> taken, given;
};

/// A stage of this rank.
struct Stage {
  int64_t number = 0;
  runtime::Model *model = nullptr;
  const Program *backward = nullptr; ///< null: nothing has a gradient
  bool updates = false;              ///< it has parameters
  bool hasNorm = false;              ///< and its update needs that of all
  bool isLast = false;
  std::vector<const Slot *> inputs; ///< of the model
  std::vector<comm::Shard> pieces;  ///< of each, what this rank has
  /// What goes forward, and the gradients of these that go back.
  Pack takes, gives, takesBack, givesBack;
  std::vector<const Slot *> gradients; ///< of parameters
  Tensors gradient;                    ///< memory for each
  Tensors last;                        ///< those that the update is by
  Tensor loss, one;
  std::string normName;        ///< the state that has the norm of all gradients
  std::vector<Flight> flights; ///< as many as can be under way
  /// What came of others, or of this rank, for the forward and the backward of
  /// a batch, and what its backward gave.
  Messages forThere, forBack, toSend;
  /// Handles of a backward's results: of what is undefined they are reset.
  Tensors gradientResults, backResults;
  int64_t mostLive = 0;

  /// Batches are forward and back in their order.
  Flight &flight(int64_t batch) {
    return flights[size_t(batch) % flights.size()];
  }
};

struct Pipeline::State {
  std::vector<runtime::Model> models;
  /// Of what a rank has beside its models.
  Account account = std::make_shared<runtime::MemoryAccount>();
  std::shared_ptr<comm::Communicator> world, group;
  std::unique_ptr<comm::Communicator> line;
  int64_t stageCount = 1, rankCount = 1;
  std::string lossName;
  artifact::DType lossType = artifact::DType::F32;
  std::vector<Stage> stages;
  bool hasNorm = false;
  std::optional<double> norm;
  double waited = 0; ///< seconds, of the last call
  /// The first stage that has the scale of the loss; none if it is not scaled.
  std::optional<int64_t> scaleStage;

  /// The schedules that were asked for, by the number of batches: this rank's.
  std::map<int64_t, std::vector<Step>> schedules;
  // Of one call of a program; and a number to set.
  std::vector<runtime::Argument> arguments;
  std::vector<runtime::Destination> results;
  Tensor number;

  /// Where a stage has what arrived for work of it.
  static Messages &arrived(Stage &stage, const Work &work) {
    return work.isBackward ? stage.forBack : stage.forThere;
  }
  Stage &stage(int64_t number) { return stages[size_t(number / rankCount)]; }
  /// The rank of the line that has a stage.
  int rankOf(int64_t number) const { return int(number % rankCount); }
  bool isHere(int64_t number) const { return rankOf(number) == line->rank(); }

  /// Makes a call of `line`, and adds what it takes to `waited`.
  template <typename Fn> Status alongLine(Fn call) {
    using Clock = std::chrono::steady_clock;
    auto begin = Clock::now();
    Status status = call(*line);
    waited += std::chrono::duration<double>(Clock::now() - begin).count();
    return status;
  }

  Status connect();
  Status prepare(const std::vector<StageFacts> &facts);
  Status prepareStage(Stage &stage, const std::vector<StageFacts> &facts);
  Result<const std::vector<Step> *> schedule(int64_t batches);
  Status takeInputs(Stage &stage, const GiveBatch &give, int64_t batch,
                    Flight &flight);
  Status forward(const Work &work, const GiveBatch &give, double &loss);
  Status backward(const Work &work, bool isUpdate);
  Status useGradients(Stage &stage, const char *program,
                      const Tensors &gradients);
  Status scaleLoss();
  Status update();
  Status exchange(const Step &step);
  Status hand(const Work &work);
};

} // namespace tandem::pipeline

#endif
