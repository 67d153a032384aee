//===- ThreadPool.cpp - runs a range of items on several threads ----------===//
//
// A job is open from its submission until its last range is taken. A worker
// that wakes in time joins it, and the caller waits for those that joined, not
// for those still asleep: a worker without a processor delays nobody. Joining
// and leaving are one atomic operation each; the mutex is only for sleep.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/ThreadPool.h"
#include "runtime/device/Processors.h"

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <system_error>

namespace tandem::runtime {

namespace {

/// Ranges for each thread: the others wait for the last one at the end of each
/// job, and a thread that is held up has few left to itself.
constexpr int64_t rangesPerThread = 16;
/// How long a thread looks for what is about to happen before it blocks: about
/// what blocking and waking take in a virtual machine (40 us and more), so that
/// at most twice the shorter of the two is lost. Longer than the gap between
/// two launches of one program.
constexpr auto patience = std::chrono::microseconds(100);

// The gate: workers in the job, flags, and the number of the job.
constexpr uint64_t oneWorker = 1, workerMask = 0xffff;
constexpr uint64_t openFlag = 1 << 16, stopFlag = 1 << 17;
constexpr int jobShift = 20;

uint64_t jobOf(uint64_t gate) { return gate >> jobShift; }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Looks for a while whether `holds`; returns what it saw last.
template <typename Fn> bool lookFor(Fn holds) {
  auto until = std::chrono::steady_clock::now() + patience;
  do {
    for (int i = 0; i < 8; ++i) {
      if (holds())
        return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return holds();
}

/// How often this process came out of a fork, itself or its parents.
std::atomic<unsigned> forks{0};

unsigned countForks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;
  return forks.load();
}

} // namespace

ThreadPool::ThreadPool(int threads)
    : parts(std::make_unique<Part[]>(std::max(1, threads))),
      processors(std::make_unique<std::atomic<int>[]>(std::max(1, threads))),
      hasProcessors(threads <= availableThreads()), forksBefore(countForks()) {
  for (int i = 0; i < threads; ++i)
    processors[i] = -1;
  workers.reserve(std::max(0, threads - 1));
  for (int i = 1; i < threads; ++i) {
    try {
      workers.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error &) {
      break;
    }
  }
}

bool ThreadPool::isForked() const {
  return forks.load(std::memory_order_relaxed) != forksBefore;
}

ThreadPool::~ThreadPool() {
  if (isForked()) {
    // To join threads that are not here would be to wait without end, as would
    // destroying a condition that they wait for.
    (void)rest.release();
    (void)new std::vector<std::thread>(std::move(workers));
    return;
  }
  {
    std::lock_guard lock(rest->mutex);
    gate.fetch_or(stopFlag);
  }
  rest->wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

int64_t ThreadPool::Job::begin(int64_t range) const {
  int64_t each = units / ranges, longer = units % ranges;
  int64_t unit = range * each + std::min(range, longer);
  return unit == units ? work : unit * grain;
}

int64_t ThreadPool::Part::takeFront() {
  uint64_t seen = left.load(std::memory_order_relaxed);
  while (uint32_t(seen) < seen >> 32)
    if (left.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed))
      return int64_t(uint32_t(seen));
  return -1;
}

int64_t ThreadPool::Part::takeBack() {
  uint64_t seen = left.load(std::memory_order_relaxed);
  while (uint32_t(seen) < seen >> 32)
    if (left.compare_exchange_weak(seen, seen - (uint64_t(1) << 32),
                                   std::memory_order_relaxed))
      return int64_t(seen >> 32) - 1;
  return -1;
}

void ThreadPool::run(int64_t work, int64_t grain, Body body, void *context) {
  if (work <= 0)
    return;
  grain = std::min(grain, work);
  int64_t units = (work - 1) / grain + 1;
  if (units == 1 || workers.empty() || isForked()) {
    body(context, 0, work, 0);
    return;
  }
  std::lock_guard submitted(submission);
  processors[0].store(currentProcessor(), std::memory_order_relaxed);
  job = {body,  context, work,
         grain, units,   std::min(units, threads() * rangesPerThread)};
  // Threads that no range is for begin with those of the others.
  int64_t first = 0, owners = std::min<int64_t>(threads(), job.ranges);
  for (int64_t t = 0; t < threads(); ++t) {
    int64_t last = t < owners ? job.ranges * (t + 1) / owners : first;
    parts[t].left.store(uint64_t(last) << 32 | uint64_t(first),
                        std::memory_order_relaxed);
    first = last;
  }
  uint64_t number = jobOf(gate.load(std::memory_order_relaxed)) + 1;
  gate.store(number << jobShift | openFlag);
  if (sleepers.load() > 0) {
    { std::lock_guard lock(rest->mutex); } // who is about to sleep, sleeps then
    if (job.ranges >= threads())
      rest->wake.notify_all();
    else
      for (int64_t i = 1; i < job.ranges; ++i)
        rest->wake.notify_one();
  }
  drain(0);
  gate.fetch_and(~openFlag);
  awaitWorkers();
}

void ThreadPool::awaitWorkers() {
  auto isDone = [&] { return (gate.load() & workerMask) == 0; };
  if (lookFor(isDone))
    return;
  std::unique_lock lock(rest->mutex);
  rest->finished.wait(lock, isDone);
}

/// Counts a worker out; the last one wakes the caller.
void ThreadPool::leave() {
  uint64_t before = gate.fetch_sub(oneWorker);
  if ((before & workerMask) != oneWorker || (before & openFlag))
    return;
  { std::lock_guard lock(rest->mutex); } // as in `run`
  rest->finished.notify_one();
}

void ThreadPool::runRange(int64_t range, int thread) const {
  job.body(job.context, job.begin(range), job.begin(range + 1), thread);
}

void ThreadPool::drain(int thread) {
  for (int64_t range; (range = parts[thread].takeFront()) >= 0;)
    runRange(range, thread);
  for (int i = 1; i < threads(); ++i)
    for (int64_t range;
         (range = parts[(thread + i) % threads()].takeBack()) >= 0;)
      runRange(range, thread);
}

/// Systems wake a worker where its caller runs, and may leave both there for
/// tenths of a second beside a processor that has nothing to do.
void ThreadPool::standApart(int thread) {
  if (!hasProcessors)
    return;
  int mine = currentProcessor();
  std::atomic<int> &noted = processors[thread];
  if (noted.load(std::memory_order_relaxed) != mine)
    noted.store(mine, std::memory_order_relaxed);
  auto isMine = [&](const std::atomic<int> &other) {
    return other.load(std::memory_order_relaxed) == mine;
  };
  // Of two on one processor the latter moves.
  if (mine < 0 || std::none_of(&processors[0], &noted, isMine))
    return;
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (int i = 0; i < threads(); ++i)
    if (int at = processors[i].load(std::memory_order_relaxed); at >= 0)
      CPU_SET(at, &taken);
  if (leaveProcessors(taken))
    noted.store(currentProcessor(), std::memory_order_relaxed);
}

void ThreadPool::sleep(int thread, uint64_t seen) {
  processors[thread].store(-1, std::memory_order_relaxed);
  std::unique_lock lock(rest->mutex);
  sleepers.fetch_add(1);
  rest->wake.wait(lock, [&] {
    uint64_t now = gate.load();
    return jobOf(now) != seen || (now & stopFlag);
  });
  sleepers.fetch_sub(1);
}

void ThreadPool::serve(int thread) {
  uint64_t seen = 0, now = 0;
  while (true) {
    bool isNew = lookFor([&] {
      now = gate.load();
      return jobOf(now) != seen || (now & stopFlag);
    });
    if (!isNew) {
      sleep(thread, seen);
      standApart(thread);
      continue;
    }
    if (now & stopFlag)
      return;
    bool joined = false;
    while (!joined && jobOf(now) != seen && (now & openFlag))
      joined = gate.compare_exchange_weak(now, now + oneWorker);
    seen = jobOf(now);
    if (joined) {
      standApart(thread);
      drain(thread);
      leave();
    }
  }
}

} // namespace tandem::runtime
