//===- Training.h - the loop behind `train` -------------------------------===//
//
// Steps over shuffled batches from a position that a checkpoint can restore:
// training for two passes gives the same bits as training for one, stopping,
// and resuming for one more.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TRAINING_H
#define TANDEM_TOOLS_COMMANDS_TRAINING_H

#include "tools/commands/Anomaly.h"
#include "tools/commands/Checkpoint.h"
#include "tools/commands/Evaluation.h"

namespace tandem::commands {

/// What `train` is asked to do, as the options say it.
struct TrainOptions {
  static constexpr std::string_view
      usage = "train X.tdm --data NAME=@FILE ... --epochs=N [options]",
      description =
          "Trains the model of an artifact: program 'step' over batches of the "
          "data. Arrays have N rows in their first dimension; the batch is the "
          "first dimension of the program's inputs. Rows that do not fill a "
          "batch are an epoch's last step where the artifact has a size for so "
          "many (compile --variant), and are left out otherwise. Ctrl-C (INT, "
          "TERM, HUP) finishes "
          "the step, saves to --save, says where, and exits with 1; a second "
          "one ends at once.";

  ModelOptions model;
  std::vector<std::string> data, eval, metrics, augment;
  std::optional<int64_t> epochs, steps, reportInterval, saveEvery, evalEvery,
      accumulate, keep, patience, shuffleBuffer, histogramsEvery;
  std::optional<double> lr;
  std::string config, save, resume, log, accuracy,
      onNaN = "stop", saveBest, tensorboard, plot, weights, best, initFrom,
      maxTime, dashboardAddress, histograms, shard;
  Casts casts;
  bool noShuffle = false, json = false, dashboard = false, tui = false;
  AnomalyOptions anomaly;
  std::string resolved; ///< a file for --config that says all of these

  void declare(OptionTable &options);
  /// Returns where `resolved` goes, beside the checkpoint; empty: nowhere, as
  /// of a checkpoint that is a pipe.
  std::string resolvedPath() const;
  /// Says which files these options read and write.
  void declare(Files &files) const;
};

/// Returns the seconds of a text as "90", "90s", "1h30m"; nothing for another.
std::optional<double> secondsOf(std::string_view text);

/// What came of it.
struct TrainResult {
  Position position;
  int64_t steps = 0;    ///< done by this call
  int64_t rows = 0;     ///< of these steps
  double seconds = 0;   ///< since the first one began
  double stepping = 0;  ///< of these, without evaluations
  double waited = 0;    ///< of these, until batches were there
  double loss = 0;      ///< mean over the last pass, as far as it was done
  double lastLoss = 0;  ///< of the last step
  bool stopped = false; ///< by a signal
  int64_t stepsPerEpoch = 0, lastEpoch = 0;
  std::optional<Evaluation> evaluation;
  std::string best; ///< "accuracy 0.98 after step 44", where that is looked for
};

/// Trains, evaluates and saves. When a signal stops it, it has saved what there
/// is and fails with a message that says where, and how to go on. `locator`
/// says which op made a NaN, if that is asked for.
Result<TrainResult> train(const TrainOptions &options,
                          AnomalyLocator locator = nullptr);

} // namespace tandem::commands

#endif
