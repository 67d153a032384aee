//===- GradientReport.h - what a step says of its gradients ---------------===//
//
// Where the optimizer was compiled to clip by the norm, it keeps that norm and
// the number of updates that it left out, because the norm was not finite, in
// states of its own. All ranks of a mesh have the same numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_GRADIENTREPORT_H
#define TANDEM_TOOLS_COMMANDS_GRADIENTREPORT_H

#include "runtime/model/Model.h"

#include <optional>
#include <string>

namespace tandem::commands {

class GradientReport {
public:
  GradientReport() = default;
  /// Before the first step, when all states are set.
  explicit GradientReport(const runtime::Model &model);

  /// After a step.
  Status read(const runtime::Model &model);

  /// Returns whether steps can leave out their update.
  bool skips() const { return !skippedName_.empty(); }
  /// Returns the norm of the last step's gradients before they were clipped.
  std::optional<double> norm() const { return norm_; }
  /// Returns whether the last step left out its update.
  bool wasSkipped() const { return wasSkipped_; }
  /// Returns how many steps since the construction did.
  int64_t skipped() const { return skipped_; }
  /// Says that the last step, number `step`, did, and what that means.
  std::string firstSkipped(int64_t step) const;
  /// The fields of a line of the log: `, "grad_norm": 1.5`.
  std::string logFields() const;

private:
  std::string normName_, skippedName_;
  std::optional<double> norm_;
  double counted_ = 0; ///< by the model, with what was before
  int64_t skipped_ = 0;
  bool wasSkipped_ = false;
};

} // namespace tandem::commands

#endif
