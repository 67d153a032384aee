//===- TrainerStages.cpp - `train` of a model in stages -------------------===//
#include "tools/commands/Trainer.h"

namespace tandem::commands {

Trainer::Trainer(const TrainOptions &options, pipeline::Pipeline stages,
                 AnomalyLocator locator)
    : Trainer(options, stages.models().front(), locator) {
  stages_ = std::move(stages);
  stageInputs_.emplace(model_.manifest());
}

/// What is there without a whole step.
Status Trainer::findStagePrograms() {
  lossName_ = stages_->lossName();
  auto tensor = runtime::Tensor::zeros(stages_->lossType(), {});
  if (!tensor)
    return std::move(tensor).status();
  loss_ = *std::move(tensor);
  if (options_.eval.empty())
    return Status::success();
  auto evaluation = StageEvaluation::of(*stages_, options_.model.artifact);
  if (!evaluation)
    return std::move(evaluation).status();
  stageEvaluation_ = *std::move(evaluation);
  evaluate_ = &stageEvaluation_->program();
  return Status::success();
}

/// The next step, which does several at once: up to where something is saved,
/// or the pass or the training ends.
Status Trainer::stepOfStages(std::span<const int64_t> order) {
  const Position &position = result_.position;
  int64_t batch = data_->batch();
  int64_t ofPass = result_.stepsPerEpoch - position.step;
  int64_t most = std::min(stepsToDo_ - result_.steps, ofPass);
  if (const auto &every = options_.saveEvery)
    most = std::min(most, *every - position.totalSteps % *every);
  auto give = [&](int64_t i) -> Result<std::span<const runtime::Argument>> {
    if (Status status = data_->gather(
            order.subspan(size_t((position.step + i) * batch), size_t(batch)));
        !status)
      return status;
    return data_->arguments();
  };
  if (Status status = batches_.step(most, most == ofPass, give, loss_); !status)
    return status;
  return updates_.take(models(), batches_.endedUpdate(), stages_->norm());
}

} // namespace tandem::commands
