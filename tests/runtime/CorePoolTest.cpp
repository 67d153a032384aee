//===- CorePoolTest.cpp - the thread pool ---------------------------------===//
//
// Coverage of ranges, who runs which, many callers, many pools, and that idle
// workers do not burn processor time.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace tandem::runtime;

namespace {

struct Record {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::set<int> threads;

  static void body(void *context, int64_t begin, int64_t end, int thread) {
    Record &record = *static_cast<Record *>(context);
    std::lock_guard lock(record.mutex);
    record.ranges.emplace_back(begin, end);
    record.threads.insert(thread);
  }
};

// A pool whose process was forked waited for workers that are not there, when
// it ran and when it ended.
TEST(ThreadPool, AForkedProcessDoesAllByItself) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer ends a forked process that makes "
                  "threads";
#endif
  ThreadPool pool(3);
  Record record;
  pool.run(300, 1, Record::body, &record);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(10);
    {
      ThreadPool own(2); // of this process
      Record here;
      pool.run(300, 1, Record::body, &here);
      own.run(300, 1, Record::body, &here);
      int64_t sum = 0;
      for (auto [begin, end] : here.ranges)
        sum += end - begin;
      if (sum != 600)
        ::_exit(1);
    }
    pool.~ThreadPool();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  pool.run(300, 1, Record::body, &record);
}

TEST(ThreadPool, RangesCoverAndKeepTheGrain) {
  for (int threads : {1, 2, 5})
    for (int64_t work : {0, 1, 7, 64, 1000})
      for (int64_t grain : {1, 3, 64, 5000}) {
        ThreadPool pool(threads);
        Record record;
        pool.run(work, grain, Record::body, &record);
        std::sort(record.ranges.begin(), record.ranges.end());
        int64_t at = 0;
        for (auto [begin, end] : record.ranges) {
          ASSERT_EQ(begin, at);
          ASSERT_EQ(begin % grain, 0);
          ASSERT_GT(end, begin);
          at = end;
        }
        ASSERT_EQ(at, work);
      }
}

TEST(ThreadPool, SmallWorkStaysWithTheCaller) {
  ThreadPool pool(4);
  Record record;
  pool.run(100, 100, Record::body, &record);
  EXPECT_EQ(record.ranges.size(), 1u);
  EXPECT_EQ(record.threads, std::set<int>{0});
}

TEST(ThreadPool, RangesAreAsEqualAsCanBe) {
  ThreadPool pool(2);
  Record record;
  pool.run(71 * 3, 3, Record::body, &record);
  EXPECT_EQ(record.ranges.size(), 32u);
  for (auto [begin, end] : record.ranges) {
    EXPECT_GE(end - begin, 2 * 3);
    EXPECT_LE(end - begin, 3 * 3);
  }
}

/// What a body waits for; not for ever, so that a failure ends.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int passed = 0;
  std::map<int, int64_t> first; ///< of each thread, where it began

  bool await(std::unique_lock<std::mutex> &lock, int count) {
    return changed.wait_for(lock, std::chrono::seconds(60),
                            [&] { return passed >= count; });
  }
};

TEST(ThreadPool, EachThreadBeginsWithItsOwnPart) {
  ThreadPool pool(3);
  for (int job = 0; job < 20; ++job) {
    Gate gate;
    pool.run(
        12, 1,
        [](void *context, int64_t begin, int64_t, int thread) {
          Gate &gate = *static_cast<Gate *>(context);
          std::unique_lock lock(gate.mutex);
          if (!gate.first.emplace(thread, begin).second)
            return;
          ++gate.passed;
          gate.changed.notify_all();
          EXPECT_TRUE(gate.await(lock, 3));
        },
        &gate);
    EXPECT_EQ(gate.first, (std::map<int, int64_t>{{0, 0}, {1, 4}, {2, 8}}));
  }
}

TEST(ThreadPool, WhatOneThreadDoesNotGetToOthersTake) {
  ThreadPool pool(2);
  Gate gate;
  pool.run(
      8, 1,
      [](void *context, int64_t begin, int64_t, int thread) {
        Gate &gate = *static_cast<Gate *>(context);
        std::unique_lock lock(gate.mutex);
        ++gate.passed;
        gate.changed.notify_all();
        // The caller is held up in its first range until all is done.
        if (thread == 0) {
          EXPECT_EQ(begin, 0);
          EXPECT_TRUE(gate.await(lock, 8));
        }
      },
      &gate);
  EXPECT_EQ(gate.passed, 8);
}

TEST(ThreadPool, HugeWorkDoesNotOverflow) {
  ThreadPool pool(3);
  Record record;
  int64_t work = int64_t(1) << 60;
  pool.run(work, work / 2 + 1, Record::body, &record);
  std::sort(record.ranges.begin(), record.ranges.end());
  ASSERT_EQ(record.ranges.size(), 2u);
  EXPECT_EQ(record.ranges[1].second, work);
}

TEST(ThreadPool, ManyCallersManyJobs) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::atomic<int64_t> sum{0};
        pool.run(
            37, 2,
            [](void *context, int64_t begin, int64_t end, int) {
              auto &sum = *static_cast<std::atomic<int64_t> *>(context);
              for (int64_t k = begin; k < end; ++k)
                sum += k;
            },
            &sum);
        total += sum;
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(total, 4 * 500 * (36 * 37 / 2));
}

TEST(ThreadPool, StartsAndStops) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(4);
    Record record;
    if (i % 2)
      pool.run(64, 1, Record::body, &record);
  }
}

TEST(ThreadPool, IdleWorkersSleep) {
  ThreadPool pool(8);
  Record record;
  pool.run(64, 1, Record::body, &record);
  auto processorTime = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  double before = processorTime();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // Seven spinning workers on two processors would take 0.3 s or more.
  EXPECT_LT(processorTime() - before, 0.05);
}

} // namespace
