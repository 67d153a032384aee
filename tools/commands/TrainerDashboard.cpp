//===- TrainerDashboard.cpp - what a training shows in a browser ----------===//
#include "tools/commands/Trainer.h"

#include "tools/commands/Print.h"

namespace tandem::commands {

Status Trainer::openDashboard() {
  if (!options_.dashboard || !isFirstRank())
    return Status::success();
  rate_ = learningRate().value_or(NAN);
  auto opened =
      Dashboard::open(options_.dashboardAddress, dataManifest().model);
  if (!opened)
    return std::move(opened).status();
  dashboard_ = *std::move(opened);
  note("this training can be watched on this machine at " + dashboard_->url());
  return Status::success();
}

/// The step that was done, of so many rows; `before`: the seconds before it.
void Trainer::show(int64_t epoch, int64_t rows, double before) {
  double memory = 0;
  for (const runtime::Model &model : models())
    memory += double(model.memory().current);
  double seconds = result_.seconds - before;
  dashboard_->step({double(result_.position.totalSteps), double(epoch),
                    result_.lastLoss, rate_,
                    seconds > 0 ? double(rows) / seconds : NAN, memory,
                    result_.seconds});
}

void Trainer::show(const Evaluation &evaluation) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const Mean &mean : evaluation.means)
    numbers.emplace_back(mean.name, mean.value);
  if (const auto &accuracy = evaluation.accuracy)
    numbers.emplace_back("accuracy", double(accuracy->right()) /
                                         double(accuracy->counted()));
  for (const MetricValue &metric : evaluation.metrics)
    numbers.emplace_back(metric.name, metric.value);
  dashboard_->evaluation(result_.position.totalSteps, numbers);
}

} // namespace tandem::commands
