//===- BudgetCurve.h - memory against time over all budgets ---------------===//
#ifndef TANDEM_TOOLS_TANDEM_BUDGETCURVE_H
#define TANDEM_TOOLS_TANDEM_BUDGETCURVE_H

#include "compiler/Compile.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem {

/// A model compiled under one memory budget.
struct CurvePoint {
  double budget = 1;
  int64_t peak = 0;     ///< planned bytes of a step
  int64_t saved = 0;    ///< bytes between forward and backward
  int64_t repeated = 0; ///< ops that the backward runs again
  /// Seconds of a step: predicted for the kernels of the plan (ReportFacts.h),
  /// and the median of what was measured.
  std::optional<double> predicted, measured;
};

struct BudgetCurve {
  std::string model, target;
  std::vector<CurvePoint> points; ///< of rising budgets
};

/// Compiles the model under the budgets 0, 0.1, ..., 1. With `seconds`, which
/// needs an optimizer, runs the step of each plan on this machine, the plans by
/// turns, `seconds` of each in all, with the parameters of the file `params`,
/// if there is one, else initial or made-up ones.
Result<BudgetCurve> budgetCurve(const std::string &path,
                                const CompileOptions &options,
                                std::optional<double> seconds,
                                const std::string &params);

/// For machines; for people who look; for people who read.
std::string toJson(const BudgetCurve &curve);
std::string toSvg(const BudgetCurve &curve);
std::string toTable(const BudgetCurve &curve);

} // namespace tandem

#endif
