//===- RankWatch.h - sees that collectives on a GPU end -------------------===//
//
// A kernel of NCCL waits for the other ranks for ever, and so would the host
// that waits for its result. A thread of this class asks, a few times a second,
// whether the oldest collective that has begun is over, and NCCL for errors.
// After an error, or when the limit is over, it makes the device lost
// (Context:: lose) with the rank and the place in the model, and then aborts
// the communicators, which ends their kernels.
//
// A limit counts from when the collective could begin: what its stream waits
// for takes as long as it takes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_RANKWATCH_H
#define TANDEM_CUDA_RANKWATCH_H

#include "cuda/Events.h"
#include "cuda/NcclApi.h"
#include "runtime/artifact/Manifest.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::cuda {

/// Returns what a collective is called in messages: its place in the model, or
/// its name.
std::string placeOf(const artifact::Collective &what);

/// Ends a communicator that nobody waits on, as all its ranks do; where the
/// others do not come for a few seconds, alone.
void endTogether(const nccl::Functions &call, nccl::ncclComm_t comm);

class RankWatch {
public:
  RankWatch(const Context &context, EventPool &events)
      : context(context), events(events) {}
  /// Ends the thread; communicators are left alone.
  ~RankWatch();

  /// Before any of the others.
  void open(const nccl::Functions &functions, int rank,
            std::chrono::milliseconds limit);
  void add(nccl::ncclComm_t comm);

  /// Locks what the thread would abort, while something is queued.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }
  /// Says that `what` stands on its stream between the two events, which come
  /// back to the pool. The lock is held.
  void expect(const artifact::Collective &what, driver::CUevent begin,
              driver::CUevent end);
  /// Why nothing may be queued any more, or success. The lock is held.
  const Status &failure() const { return failed; }
  /// Makes the device lost and aborts everything. The lock is held.
  void giveUp(Status why);
  /// Ends the thread.
  void stop();
  bool isAborted() const { return isOver; }

private:
  using Clock = std::chrono::steady_clock;
  struct Expected {
    const artifact::Collective *what;
    driver::CUevent begin, end;
  };

  void run();
  void look();
  bool hasPassed(driver::CUevent event);

  const Context &context;
  EventPool &events;
  const nccl::Functions *call = nullptr;
  int rank = 0;
  std::chrono::milliseconds limit{0};
  std::thread thread;
  std::mutex mutex; ///< of all below
  std::condition_variable changed;
  std::vector<nccl::ncclComm_t> comms;
  std::deque<Expected> expected; ///< the oldest first
  /// Since when the oldest has begun; nothing before that.
  std::optional<Clock::time_point> since;
  Status failed;
  bool isOver = false, isStopping = false;
};

} // namespace tandem::cuda

#endif
