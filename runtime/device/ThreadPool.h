//===- ThreadPool.h - runs a range of items on several threads ------------===//
//
// A pool of threads - 1 workers; the calling thread is the last one. `run` cuts
// [0, work) into ranges that begin at multiples of `grain`; which ranges there
// are depends on work, grain and the number of threads only, which thread takes
// one does not matter to results. Each thread begins with its own part of the
// ranges, the same one for the same work, so that it finds in its caches what
// it left there in the job before; then it takes from the ends of the others'.
// Nothing is allocated by `run`. A worker without a job looks for one for
// about as long as waking it would take, 100 us, and then blocks; so does a
// caller that waits for the last ranges. Threads that share a processor while
// others are free part, if there are enough; none is bound to one. In a process
// that was forked there are no workers: the caller does all of it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_THREADPOOL_H
#define TANDEM_RUNTIME_DEVICE_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::runtime {

class ThreadPool {
public:
  /// Called over a range; `thread` is 0 for the caller of `run`, else the
  /// number of the worker. Must not throw and must not call `run` of the same
  /// pool.
  using Body = void (*)(void *context, int64_t begin, int64_t end, int thread);

  /// Starts `threads` - 1 workers, or as many as the system gives.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Returns the number of threads, with the caller.
  int threads() const { return static_cast<int>(workers.size()) + 1; }

  /// Runs `body` over [0, work) and returns when all of it is done. `work` is
  /// at most 2^60 and `grain` at least 1. Several threads may call; one job
  /// runs at a time. Work of one grain runs on the calling thread.
  void run(int64_t work, int64_t grain, Body body, void *context);

private:
  /// The ranges of a job: `ranges` of them, over `units` grains, as equal as
  /// can be.
  struct Job {
    Body body = nullptr;
    void *context = nullptr;
    int64_t work = 0, grain = 1, units = 0, ranges = 0;
    int64_t begin(int64_t range) const;
  };
  /// The ranges [front, back) that nobody has taken of a thread's part: its
  /// thread takes from the front, the others from the back.
  struct alignas(128) Part {
    std::atomic<uint64_t> left{0}; ///< back in the upper half
    int64_t takeFront();
    int64_t takeBack();
  };

  /// What those that sleep and those that wake them share.
  struct Rest {
    std::mutex mutex;
    std::condition_variable wake, finished;
  };

  /// Whether the workers are in another process.
  bool isForked() const;
  void serve(int thread);
  void sleep(int thread, uint64_t seen);
  void standApart(int thread);
  void drain(int thread);
  void runRange(int64_t range, int thread) const;
  void leave();
  void awaitWorkers();

  std::vector<std::thread> workers;
  std::unique_ptr<Part[]> parts; ///< one for each thread
  /// Where each thread was seen last, -1 while it sleeps; and whether there
  /// were as many processors as threads.
  std::unique_ptr<std::atomic<int>[]> processors;
  bool hasProcessors;
  Job job;               ///< written while no worker is in it
  std::mutex submission; ///< held by the caller whose job runs

  /// The number of the job, whether workers may still join it, whether they
  /// shall end, and how many are in it (ThreadPool.cpp).
  alignas(64) std::atomic<uint64_t> gate{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::unique_ptr<Rest> rest = std::make_unique<Rest>();
  unsigned forksBefore; ///< it was made
};

} // namespace tandem::runtime

#endif
