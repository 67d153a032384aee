//===- CoreProcessorsTest.cpp - threads that stand on one processor -------===//
#include "runtime/device/Processors.h"
#include "runtime/device/ThreadPool.h"

#include <chrono>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

using namespace tandem::runtime;

namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

/// Moves the calling thread to this processor, where it may stay.
void moveTo(int processor) {
  cpu_set_t before = allowed(), only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  ASSERT_EQ(sched_setaffinity(0, sizeof(only), &only), 0);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

#define SKIP_ON_ONE_PROCESSOR()                                                \
  if (availableThreads() < 2)                                                  \
  GTEST_SKIP() << "this process may use one processor only"

TEST(Processors, LeavingKeepsWhatIsAllowed) {
  SKIP_ON_ONE_PROCESSOR();
  cpu_set_t before = allowed(), taken;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &before))
      continue;
    moveTo(processor);
    CPU_ZERO(&taken);
    CPU_SET(processor, &taken);
    EXPECT_TRUE(leaveProcessors(taken));
    EXPECT_NE(currentProcessor(), processor);
    cpu_set_t after = allowed();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }
}

TEST(Processors, NobodyLeavesForNowhere) {
  cpu_set_t before = allowed();
  EXPECT_FALSE(leaveProcessors(before));
  cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

/// Two ranges, each of which waits for the other.
struct Meeting {
  std::mutex mutex;
  std::condition_variable came;
  int here = 0;
  int caller = -1, worker = -1; ///< their processors
  bool joinsCaller = false;     ///< the worker moves to the caller's

  static void body(void *context, int64_t, int64_t, int thread) {
    Meeting &m = *static_cast<Meeting *>(context);
    std::unique_lock lock(m.mutex);
    (thread == 0 ? m.caller : m.worker) = currentProcessor();
    ++m.here;
    m.came.notify_all();
    m.came.wait_for(lock, std::chrono::seconds(60),
                    [&] { return m.here == 2; });
    if (thread == 1 && m.joinsCaller)
      moveTo(m.caller);
  }
};

TEST(Processors, WorkersDoNotStayWithTheirCaller) {
  SKIP_ON_ONE_PROCESSOR();
  ThreadPool pool(2);
  int together = 0;
  constexpr int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    Meeting first, second;
    first.joinsCaller = true;
    pool.run(2, 1, Meeting::body, &first);
    ASSERT_EQ(first.here, 2);
    pool.run(2, 1, Meeting::body, &second);
    ASSERT_EQ(second.here, 2);
    together += second.caller == second.worker;
  }
  // The system may move the caller to its worker now and then.
  EXPECT_LT(together, rounds / 2);
}

} // namespace
