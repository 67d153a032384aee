//===- SmallerPlans.h - a model compiled to take less memory --------------===//
#ifndef TANDEM_TOOLS_TANDEM_SMALLERPLANS_H
#define TANDEM_TOOLS_TANDEM_SMALLERPLANS_H

#include "compiler/Compile.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace tandem::commands {

/// A step under another memory budget.
struct SmallerPlan {
  std::string budget; ///< as --memory-budget has it
  int64_t peak = 0;
  double seconds = 0;            ///< predicted, as ReportFacts.h does
  size_t repeated = 0;           ///< ops that the backward runs again
  nlohmann::ordered_json memory; ///< the manifest's `step_memory`
};

struct SmallerPlans {
  /// The fastest whose peak is at most half; none where there is none.
  std::optional<SmallerPlan> half;
  SmallerPlan least; ///< that of the least peak
};

/// Compiles the model at `path` for a peak of at most half of `peak`.
Result<SmallerPlans> smallerPlans(const std::string &path,
                                  const CompileOptions &options, int64_t peak);

} // namespace tandem::commands

#endif
