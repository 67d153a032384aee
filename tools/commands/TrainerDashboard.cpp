//===- TrainerDashboard.cpp - what a training shows in a browser ----------===//
#include "tools/commands/Trainer.h"

#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <cmath>

namespace tandem::commands {

Status Trainer::openDashboard() {
  if (!isFirstRank() || (!options_.dashboard && !options_.tui))
    return Status::success();
  rate_ = learningRate().value_or(NAN);
  if (options_.tui)
    view_ = std::make_unique<TerminalView>(dataManifest().model, stepsToDo_);
  if (!options_.dashboard)
    return Status::success();
  auto opened =
      Dashboard::open(options_.dashboardAddress, dataManifest().model);
  if (!opened)
    return std::move(opened).status();
  dashboard_ = *std::move(opened);
  note("this training can be watched on this machine at " + dashboard_->url());
  return Status::success();
}

Status Trainer::openHistograms() {
  if (options_.histograms.empty())
    return Status::success();
  if (stages_ || rankCount() > 1)
    return Status::unsupported("--histograms looks at one process, and the "
                               "artifact is for several");
  auto watch = HistogramWatch::of(model_.manifest(), options_.histograms,
                                  options_.histogramsEvery.value_or(100));
  if (!watch)
    return std::move(watch).status();
  histogramWatch_ = *std::move(watch);
  size_t count = histogramWatch_->names().size();
  if (options_.dashboard && count > Dashboard::kMostShown)
    note("the page shows " + std::to_string(Dashboard::kMostShown) + " of " +
         std::to_string(count) + " histograms");
  if (options_.log.ends_with(".csv"))
    note("a table has no histograms: they are not in " +
         io::inQuotes(options_.log));
  return Status::success();
}

Status Trainer::takeHistograms() {
  histograms_.clear();
  if (!histogramWatch_ ||
      !histogramWatch_->isDue(result_.position.totalSteps + 1))
    return Status::success();
  auto made = histogramWatch_->look(model_, data_->arguments());
  if (!made)
    return std::move(made).status().in("--histograms");
  histograms_ = *std::move(made);
  return Status::success();
}

/// Behind the step's own line, so that no log is ahead of its training.
void Trainer::showHistograms(int64_t epoch) {
  if (histograms_.empty())
    return;
  int64_t step = result_.position.totalSteps;
  log_.histograms(epoch, step, histograms_, result_.seconds);
  if (dashboard_)
    dashboard_->histograms(step, histograms_);
}

/// The step that was done, of so many rows; `before`: the seconds of steps
/// before it.
void Trainer::show(int64_t epoch, int64_t rows, double before) {
  double memory = 0;
  for (const runtime::Model &model : models())
    memory += double(model.memory().current);
  double seconds = result_.stepping - before;
  Dashboard::Numbers numbers = {double(result_.position.totalSteps),
                                double(epoch),
                                result_.lastLoss,
                                rate_,
                                seconds > 0 ? double(rows) / seconds : NAN,
                                memory,
                                result_.seconds};
  if (dashboard_)
    dashboard_->step(numbers);
  if (view_)
    view_->step(numbers);
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
  if (dashboard_)
    dashboard_->evaluation(result_.position.totalSteps, numbers);
  if (view_)
    view_->evaluation(numbers);
}

} // namespace tandem::commands
