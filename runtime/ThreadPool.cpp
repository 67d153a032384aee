//===- ThreadPool.cpp - runs a range of items on several threads ----------===//
//
// A job is open from its submission until its last chunk is taken. A worker
// that wakes in time joins it (under the mutex) and the caller waits for those
// that joined, not for those still asleep: a worker without a processor delays
// nobody.
//
//===----------------------------------------------------------------------===//
#include "runtime/ThreadPool.h"

#include <algorithm>
#include <sched.h>
#include <system_error>

namespace tandem::runtime {

namespace {

/// Chunks for each thread: enough to even out a thread that is held up.
constexpr int64_t chunksPerThread = 4;
/// A few microseconds: the gap between two launches of one program.
constexpr int spins = 256;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

} // namespace

int availableThreads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  workers.reserve(std::max(0, threads - 1));
  for (int i = 1; i < threads; ++i) {
    try {
      workers.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error &) {
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex);
    stop = true;
    epoch.fetch_add(1, std::memory_order_release);
  }
  wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(int64_t work, int64_t grain, Body body, void *context) {
  if (work <= 0)
    return;
  grain = std::min(grain, work);
  int64_t units = (work - 1) / grain + 1;
  if (units == 1 || workers.empty()) {
    body(context, 0, work, 0);
    return;
  }
  std::lock_guard submitted(submission);
  int64_t share = std::max<int64_t>(1, units / (threads() * chunksPerThread));
  int64_t chunks = (units - 1) / share + 1;
  {
    std::lock_guard lock(mutex);
    job = {body, context, work, share * grain, chunks};
    next.store(0, std::memory_order_relaxed);
    open = true;
    epoch.fetch_add(1, std::memory_order_release);
  }
  if (chunks >= threads())
    wake.notify_all();
  else
    for (int64_t i = 1; i < chunks; ++i)
      wake.notify_one();
  drain(0);
  {
    std::lock_guard lock(mutex);
    open = false;
  }
  for (int i = 0; i < spins && active.load(std::memory_order_acquire); ++i)
    pause();
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return active == 0; });
}

void ThreadPool::drain(int thread) {
  while (true) {
    int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= job.chunks)
      return;
    int64_t begin = chunk * job.chunk;
    int64_t end = begin + std::min(job.chunk, job.work - begin);
    job.body(job.context, begin, end, thread);
  }
}

void ThreadPool::serve(int thread) {
  uint64_t seen = 0;
  while (true) {
    for (int i = 0; i < spins && epoch.load(std::memory_order_acquire) == seen;
         ++i)
      pause();
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return epoch != seen; });
    if (stop)
      return;
    seen = epoch;
    if (!open)
      continue;
    ++active;
    lock.unlock();
    drain(thread);
    lock.lock();
    if (--active == 0)
      finished.notify_one();
  }
}

} // namespace tandem::runtime
