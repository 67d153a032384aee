//===- Timing.h - how long the calls of a program take --------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TIMING_H
#define TANDEM_TOOLS_COMMANDS_TIMING_H

#include "tools/commands/Arrays.h"

#include <functional>

namespace tandem::commands {

/// How many calls are made: `warmup` before the clock starts, then `steps`, or
/// as many as begin within `seconds` (3, where neither is given).
struct Repeats {
  std::optional<int64_t> warmup, steps;
  std::optional<double> seconds;
};

/// Of an odd number of values the one in the middle, else the mean of both.
inline double medianOf(const std::vector<double> &sorted) {
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle]
                           : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// The same of any order; of none 0.
double medianOfUnsorted(std::vector<double> values);

struct Timing {
  int64_t warmup = 0;
  std::vector<double> calls;    ///< seconds of each timed call, in their order
  std::vector<double> together; ///< of each, in which nothing was computed, but
                                ///< exchanged with other ranks; of one process
                                ///< empty
  std::vector<double> sorted;   ///< `calls`, by their length

  double at(double quantile) const {
    return sorted[size_t(quantile * double(sorted.size() - 1) + 0.5)];
  }
  /// In seconds.
  double median() const { return medianOf(sorted); }
};

/// Returns a tensor for each input of the program: the given one, "NAME=@FILE",
/// or one that is made up, the same one each time: floating point uniform in
/// [-1, 1), integers zero, or uniform in [0, high) where the manifest states a
/// range. All are where the model computes.
Result<std::vector<NamedTensor>>
completeInputs(const std::vector<std::string> &given,
               const runtime::Model &model, const artifact::Program &program);
/// The same on the host, of a program that no model has.
Result<std::vector<NamedTensor>>
completeInputs(const std::vector<std::string> &given,
               const artifact::Manifest &manifest,
               const artifact::Program &program);

/// Makes up a value for each param and state that has none, as for inputs: a
/// program's time does not depend on them. Returns how many there were.
Result<int> completeVariables(runtime::Model &model);

/// How long the launches of a program take, over calls.
class LaunchTimes {
public:
  /// Notes the seconds of each launch of one call.
  void add(const std::vector<double> &call);
  /// The median for each launch.
  std::vector<double> medians() const;

private:
  std::vector<std::vector<double>> launches;
};

/// Calls the program with `inputs`; `launches`, if given, gets the timed calls'
/// (Unsupported on a device). Fails where it is interrupted. Several ranks make
/// as many calls, and begin each at the same time: all of them call this. With
/// several `batches` a call is an update: in front of `program` runs the
/// program `accumulate` for all batches but one.
Result<Timing> timeCalls(const Repeats &repeats, runtime::Model &model,
                         const artifact::Program &program,
                         std::vector<NamedTensor> &inputs,
                         LaunchTimes *launches = nullptr, int64_t batches = 1);
/// The same of a call that returns for how many of its seconds it computed
/// nothing, but exchanged with other ranks.
Result<Timing> timeCalls(const Repeats &repeats,
                         const std::function<Result<double>()> &call);

} // namespace tandem::commands

#endif
