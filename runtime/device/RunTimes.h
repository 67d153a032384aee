//===- RunTimes.h - how long the parts of a run took ----------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_RUNTIMES_H
#define TANDEM_RUNTIME_DEVICE_RUNTIMES_H

#include <chrono>
#include <vector>

namespace tandem::runtime {

/// Looks on while a program runs, on the thread that runs it.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// Before the first launch.
  virtual void begin() = 0;
  /// After each launch, in their order; nothing else runs then.
  virtual void ended() = 0;
};

/// Seconds of one run of a program, of the thread that ran it.
struct RunTimes {
  /// Of each launch, with the waiting for what it needs.
  std::vector<double> launches;
  /// In which this thread computed nothing: it waited for other ranks, or
  /// exchanged and added up with them. Parts of `launches`.
  double together = 0;

  /// Asked for: in which each thread was in a launch's kernel. `threads` of
  /// them for the first launch, then those of the second, ... What they lack
  /// of the launch's own time they waited.
  bool wantsThreads = false;
  int threads = 0;
  std::vector<double> inKernels;
  /// Called, unless null.
  LaunchObserver *observer = nullptr;
};

/// Adds the time of its life to `times`, unless null.
class TimeTogether {
public:
  explicit TimeTogether(RunTimes *times) : times(times) {
    if (times)
      began = std::chrono::steady_clock::now();
  }
  ~TimeTogether() {
    if (times)
      times->together += std::chrono::duration<double>(
                             std::chrono::steady_clock::now() - began)
                             .count();
  }
  TimeTogether(const TimeTogether &) = delete;
  TimeTogether &operator=(const TimeTogether &) = delete;

private:
  RunTimes *times;
  std::chrono::steady_clock::time_point began;
};

} // namespace tandem::runtime

#endif
