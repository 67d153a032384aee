//===- Profile.h - what ran when ------------------------------------------===//
//
// Times every command of programs by a pair of events, and notes phases of the
// host; the trace is JSON in the format of chrome://tracing and Perfetto: one
// row for each stream, one for each thread of the host. The device's times are
// put on the host's clock by one moment that both know.
//
// Phases are NVTX ranges too, where a library of NVTX is on this machine.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_PROFILE_H
#define TANDEM_CUDA_PROFILE_H

#include "cuda/Context.h"

#include <chrono>
#include <thread>
#include <vector>

namespace tandem::cuda {

/// Safe to use from several threads, as long as each queues on streams of its
/// own. `start`, `begin`, `end` and `stop` need a Scope around them.
class Profile {
public:
  explicit Profile(const Context &context) : context(context) {}
  ~Profile();

  /// `stream`: any, for the moment that both clocks know.
  Status start(driver::CUstream stream);
  /// Queues the first event of a command; `end` the second.
  Result<driver::CUevent> begin(driver::CUstream stream);
  /// `from`: what `begin` gave; `number`: the row.
  Status end(driver::CUevent from, driver::CUstream stream, int number,
             std::string name);
  /// Adds a phase of the host that lasted from `since` until now.
  void addPhase(std::string name, std::chrono::steady_clock::time_point since);
  /// Waits for the device and returns the trace.
  Result<std::string> stop();

private:
  struct Entry {
    std::string name;
    int stream = 0;
    driver::CUevent from = nullptr, to = nullptr;
    double start = 0, duration = 0; ///< microseconds, once they are known
  };
  struct Phase {
    std::string name;
    size_t thread = 0;
    double start = 0, duration = 0;
  };
  Result<driver::CUevent> record(driver::CUstream stream);
  Status resolve();
  double sinceStart(std::chrono::steady_clock::time_point time) const;

  const Context &context;
  std::mutex mutex;
  std::vector<driver::CUevent> free;
  std::vector<Entry> open; ///< whose times are not known
  std::vector<Entry> entries;
  std::vector<Phase> phases;
  std::vector<std::thread::id> threads;
  driver::CUevent zero = nullptr;
  std::chrono::steady_clock::time_point zeroTime;
};

/// The profile that is being made, or null.
class CurrentProfile {
public:
  std::shared_ptr<Profile> get() const {
    std::lock_guard<std::mutex> lock(mutex);
    return profile;
  }
  /// Returns the one before.
  std::shared_ptr<Profile> exchange(std::shared_ptr<Profile> other) {
    std::lock_guard<std::mutex> lock(mutex);
    return std::exchange(profile, std::move(other));
  }

private:
  mutable std::mutex mutex;
  std::shared_ptr<Profile> profile;
};

/// Begins and ends an NVTX range on this thread; nothing where there is no
/// library of NVTX.
void pushRange(const char *name);
void popRange();

} // namespace tandem::cuda

#endif
