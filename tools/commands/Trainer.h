//===- Trainer.h - one call of `train` ------------------------------------===//
//
// Its stages, in order: programs and data are found and checked
// (TrainerStart.cpp), then steps, evaluations and checkpoints follow each other
// (Training.cpp). Internal to `train`.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TRAINER_H
#define TANDEM_TOOLS_COMMANDS_TRAINER_H

#include "runtime/io/FileLock.h"
#include "tools/commands/Best.h"
#include "tools/commands/Dashboard.h"
#include "tools/commands/HistogramWatch.h"
#include "tools/commands/Log.h"
#include "tools/commands/Resume.h"
#include "tools/commands/StageEvaluation.h"
#include "tools/commands/Stages.h"
#include "tools/commands/TerminalView.h"
#include "tools/commands/TrainEvaluation.h"
#include "tools/commands/Updates.h"

#include <cmath>

namespace tandem::commands {

class Trainer {
public:
  Trainer(const TrainOptions &options, runtime::Model model,
          AnomalyLocator locator)
      : options_(options), model_(std::move(model)),
        watch_(options.anomaly, options.model.artifact, locator) {}
  /// Of a model in stages: those of this rank.
  Trainer(const TrainOptions &options, pipeline::Pipeline stages,
          AnomalyLocator locator);

  Result<TrainResult> run() {
    for (auto stage : {&Trainer::findPrograms, &Trainer::readData,
                       &Trainer::start, &Trainer::loop, &Trainer::finish})
      if (Status status = (this->*stage)(); !status) {
        if (dashboard_)
          dashboard_->end(status.message());
        return status;
      }
    if (dashboard_)
      dashboard_->end("all steps are done");
    return std::move(result_);
  }

private:
  Status findPrograms();
  Status readData();
  Status findRest();
  std::string smallerBatches() const;
  Status readWeights();
  Status readEvalData();
  Status start();
  Status findRates();
  Status checkParameters();
  Status setEnd();
  Status resume();
  Status openLog();
  std::vector<std::string> metrics() const;
  void sayWhatIsNotReached() const;
  Status loop();
  Status finishLoop();
  /// The rows of a step of the pass that has this order.
  std::span<const int64_t> rowsOf(std::span<const int64_t> order,
                                  int64_t step) const;
  Status serve(std::span<const int64_t> order, std::vector<int64_t> &next);
  Status stoppedBy(Status status);
  std::string waitedField() const;
  Status closeLog();
  Status openDashboard();
  void show(int64_t epoch, int64_t rows, double before);
  void show(const Evaluation &evaluation);
  Status openHistograms();
  /// Of the step that is to come, if it is one of those.
  Status takeHistograms();
  void showHistograms(int64_t epoch);
  Status finish();
  Status evaluateNow();
  Status save();
  Status saveOptions();
  Status saveTo(const std::string &path, bool &isSaved);
  Status takeBest(const Evaluation &evaluation);
  void goOnWithout(const Status &status);
  bool isEvaluationDue() const;
  Status stopped();
  std::string howToGoOn() const;
  Status checkLoss(std::span<const int64_t> rows);
  Status sayFirstSkipped(std::span<const int64_t> rows);
  std::optional<double> learningRate() const;
  /// The rate of the last update by a schedule, if a parameter has it.
  std::optional<double> scheduledRate() const {
    return rateGroups_.hasOthers ? updates_.rate() : std::nullopt;
  }
  Status lock(const std::string &path, io::FileLock &lock);
  Status agreeWithRanks() const;
  Status agreeOnFolder(const char *option, const std::string &path) const;
  Status findStagePrograms();
  Status stepOfStages(std::span<const int64_t> order);
  /// The models of this rank.
  std::span<runtime::Model> models() {
    return stages_ ? std::span(stages_->models()) : std::span(&model_, 1);
  }
  /// True unless the model is ahead of the step.
  bool isBetween() const { return !stages_ || batches_.isBetween(); }
  /// Of the whole model: its inputs.
  const artifact::Manifest &dataManifest() const {
    return stages_ ? stageInputs_->manifest : model_.wholeManifest();
  }

  const TrainOptions &options_;
  runtime::Model model_;
  const artifact::Program *step_ = nullptr, *evaluate_ = nullptr;
  Casts casts_;
  std::optional<Dataset> data_, evalData_;
  Counters counters_; ///< fresh ones
  std::string lossName_;
  runtime::Tensor loss_;
  Log log_;
  std::unique_ptr<Dashboard> dashboard_; ///< null where nobody asked
  std::unique_ptr<TerminalView> view_;   ///< the same
  std::optional<HistogramWatch> histogramWatch_;
  NamedHistograms histograms_; ///< of the step that is done
  RateGroups rateGroups_;
  double rate_ = NAN; ///< the learning rate, if it is known
  TrainResult result_;
  double evaluating_ = 0; ///< seconds of evaluations
  int64_t rest_ = 0;      ///< rows of a pass's last step; 0: a batch
  int64_t stepsToDo_ = 0; ///< fewer, once it is known that it ends before
  int64_t planned_ = 0;
  int64_t evaluatedAt_ = -1; ///< steps before the last evaluation of this call
  std::optional<Best> best_;
  AnomalyWatch watch_;
  Updates updates_;
  bool warnedOfLoss_ = false, warnedOfSave_ = false, warnedOfStates_ = false,
       warnedOfMetric_ = false, warnedOfDisk_ = false, savedOptions_ = false;
  Status unsavedBest_ = Status::success(); ///< of the last best
  Origin origin_;
  io::FileLock saveLock_, bestLock_, logLock_;
  std::optional<pipeline::Pipeline> stages_;
  std::optional<StageInputs> stageInputs_;
  std::optional<StageEvaluation> stageEvaluation_; ///< with --eval
  StageBatches batches_;
};

} // namespace tandem::commands

#endif
