//===- Measured.h - what the launches of a program were seen to take ------===//
#ifndef TANDEM_TOOLS_TANDEM_MEASURED_H
#define TANDEM_TOOLS_TANDEM_MEASURED_H

#include "tools/commands/KernelTimes.h"
#include "tools/tandem/PerfCounters.h"

#include <memory>

namespace tandem::commands {

/// Numbers, one of each call.
class Samples {
public:
  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  const std::vector<double> &values() const { return values_; }
  double median() const { return at(0.5); }
  /// A tenth of the calls took less, or more; of none 0.
  double low() const { return at(0.1); }
  double high() const { return at(0.9); }

private:
  double at(double quantile) const;
  std::vector<double> values_;
};

/// Of one launch.
struct LaunchSamples {
  Samples seconds;
  std::vector<Samples> threads; ///< seconds of each in the kernel
  std::vector<Samples> counts;  ///< of each kind of PerfCounters
};

/// What was seen. Calls that are not watched, that are timed and in which
/// is counted took turns: what else the machine did fell on all alike, and
/// nothing of what counting takes is in the times.
struct Measured {
  Samples unwatched, timed; ///< seconds of calls
  std::vector<LaunchSamples> launches;
  std::unique_ptr<PerfCounters> counters; ///< null where a device is timed
  std::optional<Roofs> roofs;             ///< of the host
};

/// Calls the program with `inputs`. On a device its own clock times launches
/// (cuda/Profile.h).
Result<Measured> measureProgram(const Repeats &repeats, runtime::Model &model,
                                const artifact::Program &program,
                                std::vector<NamedTensor> &inputs);

} // namespace tandem::commands

#endif
