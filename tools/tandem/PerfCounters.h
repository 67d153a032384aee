//===- PerfCounters.h - what the processor counts while kernels run -------===//
//
// By perf_event_open, of all threads of this process, in user mode; and by the
// process's clock. What the system does not give is missing, with its reason: a
// virtual machine often has no cycles, a container often only the clock.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_PERFCOUNTERS_H
#define TANDEM_TOOLS_TANDEM_PERFCOUNTERS_H

#include "runtime/device/RunTimes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// Counts over each launch of a run, where it is the run's observer.
class PerfCounters : public runtime::LaunchObserver {
public:
  /// What one can count: "cycles", "instructions", "cache_misses" (of the last
  /// cache), "page_faults", "nanoseconds" (that threads were on a processor).
  static constexpr size_t kKinds = 5;
  static std::string_view name(size_t kind);

  /// For the threads that this process has now.
  PerfCounters();
  ~PerfCounters() override;
  PerfCounters(const PerfCounters &) = delete;
  PerfCounters &operator=(const PerfCounters &) = delete;

  /// Why it is not counted; empty where it is.
  const std::string &missing(size_t kind) const { return missing_[kind]; }

  void begin() override;
  void ended() override;

  /// The counts of one launch, sums over all threads.
  using Counts = std::vector<double>;
  /// Of each launch of the last run.
  const std::vector<Counts> &launches() const { return launches_; }

private:
  /// What the system tells of a group, in its form.
  struct Group {
    uint64_t count = 0, enabled = 0, running = 0, values[kKinds] = {};
  };
  /// The counters of a thread; the first one is the group's.
  struct Thread {
    std::vector<int> files;
    Group last; ///< when it was read last
  };
  int open(size_t kind, int thread, int group) const;
  void findKinds();
  /// Of all threads, since they were read last.
  Counts read();

  std::vector<size_t> kinds_; ///< that are counted
  std::string missing_[kKinds];
  std::vector<Thread> threads_;
  double nanoseconds_ = 0; ///< when they were read last
  std::vector<Counts> launches_;
};

} // namespace tandem::commands

#endif
