//===- Best.h - which evaluation was the best -----------------------------===//
//
// By one number of each evaluation: the mean of an output, which is better the
// smaller it is, or the accuracy, which is better the larger it is, unless the
// user says otherwise. What is known goes into checkpoints, so that a resumed
// training compares with what was before.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_BEST_H
#define TANDEM_TOOLS_COMMANDS_BEST_H

#include "tools/commands/Evaluation.h"

namespace tandem::commands {

class Best {
public:
  /// Takes "METRIC", "min:METRIC" or "max:METRIC" apart; empty: the accuracy if
  /// it is counted, else the loss. Fails with Usage unless `evaluate` has it.
  static Result<Best> parse(std::string_view text,
                            const artifact::Program &evaluate,
                            const std::string &loss, const Counters &counters);

  /// Takes an evaluation after step `step`; true if it is the best one yet. One
  /// whose number is NaN never is.
  bool take(const Evaluation &evaluation, int64_t step);

  /// How many evaluations were not better since the best one.
  int64_t since() const { return since_; }
  /// "accuracy 0.98 after step 44"; of none "none was a number".
  std::string text() const;
  /// The step of the last evaluation; -1 if there was none.
  int64_t evaluated() const { return evaluated_; }

  /// For the metadata of a checkpoint, and from there; false, and nothing is
  /// taken, if it is of another metric.
  std::string metadata() const;
  bool resume(const std::string &metadata);

private:
  std::string metric_;
  std::string definition_; ///< of a Metric, whose name may be any
  bool isLarger_ = false;  ///< what is larger is better
  std::optional<double> value_;
  int64_t step_ = 0, since_ = 0, evaluated_ = -1;
};

} // namespace tandem::commands

#endif
