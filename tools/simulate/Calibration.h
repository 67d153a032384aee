//===- Calibration.h - what a measurement says of a machine ---------------===//
//
// A file of JSON: {"step_ms": 41.2, "ranks": 2}, or what `mpirun -n 2
// tandem-run bench X.tdm --json` prints (`median_ms`), with what was measured
// where it is not what is simulated (`artifact`, or `mesh` and `parallel` of
// the same model), with `processors`, those of the machine, and what else a
// benchmark says of its run. The measured step is simulated by the tables, and
// kernels are made longer, or shorter, so that it takes as long. If it takes no
// longer than exchanges alone would, these are, too.
//
// With "kernels", as `bench --kernels --json` prints them, products and other
// kernels are each as slow by themselves first.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_CALIBRATION_H
#define TANDEM_TOOLS_SIMULATE_CALIBRATION_H

#include "tools/simulate/Step.h"

#include <functional>
#include <optional>
#include <string>

namespace tandem::simulate {

struct Measurement {
  double stepSeconds = 0;
  int64_t ranks = 1;
  std::optional<double> processors; ///< of the machine that it was made on
  std::optional<double> products, others; ///< seconds of kernels
  /// What was measured, if it says: an artifact, beside the file; or how the
  /// model was compiled.
  std::string artifact, mesh, parallel;
};

/// Reads the file. The message of an error names it and the field.
Result<Measurement> readMeasurement(const std::string &path);

/// Simulates the measured step on a machine that is so much slower than the
/// tables say.
using Simulate = std::function<Result<StepResult>(const Slowness &)>;

/// What makes the measured step take as long as was measured.
Result<Slowness> slownessOf(const Measurement &measured,
                            const Simulate &simulate);

} // namespace tandem::simulate

#endif
