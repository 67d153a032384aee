//===- ThreadPool.h - runs a range of items on several threads ------------===//
//
// A pool of threads - 1 workers; the calling thread is the last one. `run` cuts
// [0, work) into ranges that begin at multiples of `grain`; which ranges there
// are depends on work, grain and the number of threads only, which thread takes
// one does not matter to results. Nothing is allocated by `run`. Idle workers
// spin for a few microseconds and then block.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_THREADPOOL_H
#define TANDEM_RUNTIME_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
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
  struct Job {
    Body body = nullptr;
    void *context = nullptr;
    int64_t work = 0, chunk = 0, chunks = 0;
  };

  void serve(int thread);
  void drain(int thread);

  std::vector<std::thread> workers;
  std::mutex submission; ///< held by the caller whose job runs

  std::mutex mutex; ///< guards what follows, but for the atomics
  std::condition_variable wake, finished;
  Job job;
  bool open = false; ///< workers may still join the job
  bool stop = false;
  std::atomic<uint64_t> epoch{0}; ///< counts jobs; changed under the mutex
  std::atomic<int> active{0};     ///< workers in the job; changed under it too
  std::atomic<int64_t> next{0};   ///< the chunk to take
};

/// Returns the number of processors that this process may use, at least 1.
int availableThreads();

} // namespace tandem::runtime

#endif
