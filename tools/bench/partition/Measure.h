//===- Measure.h - a workload's artifacts, and how they run ---------------===//
#ifndef TANDEM_TOOLS_BENCH_PARTITION_MEASURE_H
#define TANDEM_TOOLS_BENCH_PARTITION_MEASURE_H

#include "runtime/artifact/Manifest.h"
#include "tools/bench/workloads/Workloads.h"

#include <string>
#include <vector>

namespace tandem::bench {

/// An artifact of a workload, compiled with its optimizer.
struct Compiled {
  std::string path;
  artifact::Manifest manifest;
  double seconds = 0; ///< that compiling took
};

/// Compiles the model file `model` with `flags` more. `name` names the artifact
/// beside it.
Result<Compiled> compile(const std::string &model,
                         const workloads::Workload &workload,
                         const std::string &name,
                         const std::vector<std::string> &flags);

/// A step as it ran, in a process of its own.
struct Ran {
  std::vector<double> milliseconds; ///< the median of each round, rising
  int64_t residentBytes = 0; ///< the most, over a process without a model
  int64_t actualPeak = 0;    ///< what the runtime counted

  double median() const { return milliseconds[milliseconds.size() / 2]; }
};

/// Runs the steps of several artifacts by turns, `rounds` times for `seconds`
/// each, so that what else the machine does falls on all alike.
Result<std::vector<Ran>> runByTurns(const std::vector<Compiled> &artifacts,
                                    int rounds, double seconds);

} // namespace tandem::bench

#endif
