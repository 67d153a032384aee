//===- Timing.h - how long the calls of a program take --------------------===//
#ifndef TANDEM_RUNTIME_CLI_TIMING_H
#define TANDEM_RUNTIME_CLI_TIMING_H

#include "runtime/cli/Inputs.h"

namespace tandem::commands {

/// How many calls are made: `warmup` before the clock starts, then `steps`, or
/// as many as begin within `seconds` (3, where neither is given).
struct Repeats {
  std::optional<int64_t> warmup, steps;
  std::optional<double> seconds;
};

struct Timing {
  int64_t warmup = 0;
  std::vector<double> sorted; ///< seconds of each timed call

  double at(double quantile) const {
    return sorted[size_t(quantile * double(sorted.size() - 1) + 0.5)];
  }
  /// In seconds.
  double median() const {
    size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle]
                             : (sorted[middle - 1] + sorted[middle]) / 2;
  }
};

/// Returns a tensor for each input of the program: the given one, "NAME=@FILE",
/// or one that is made up, the same one each time: floating point uniform in
/// [-1, 1), integers zero, or uniform in [0, high) where the manifest states a
/// range. All are where the model computes.
Result<std::vector<NamedTensor>>
completeInputs(const std::vector<std::string> &given,
               const runtime::Model &model, const artifact::Program &program);

/// Calls the program with `inputs`. Fails where it is interrupted.
Result<Timing> timeCalls(const Repeats &repeats, runtime::Model &model,
                         const artifact::Program &program,
                         std::vector<NamedTensor> &inputs);

} // namespace tandem::commands

#endif
