//===- EngineTest.cpp - tasks of ranks, with times made by hand -----------===//
#include "tools/simulate/Engine.h"

#include <gtest/gtest.h>

namespace tandem::simulate {
namespace {

Task kernel(double seconds, std::vector<int> after = {}) {
  Task task;
  task.name = "kernel";
  task.seconds = seconds;
  task.after = std::move(after);
  return task;
}

Task exchange(int stream, double seconds, int64_t meeting = -1,
              std::vector<int> after = {}) {
  Task task = kernel(seconds, std::move(after));
  task.name = "exchange";
  task.spent = Spent::Exchange;
  task.stream = stream;
  task.meeting = meeting;
  return task;
}

// A stream is in order, another one beside it, and a task waits for what it
// names: 2 s of kernels, 3 s of an exchange behind the first, and a kernel that
// needs it.
TEST(Engine, HidesWhatNobodyWaitsFor) {
  std::vector<RankTasks> ranks = {
      {kernel(1), exchange(1, 3, -1, {0}), kernel(2), kernel(1, {1})}};
  ASSERT_TRUE(play(ranks));
  EXPECT_EQ(ranks[0][1].start, 1);
  EXPECT_EQ(ranks[0][2].end, 3);
  EXPECT_EQ(ranks[0][3].start, 4);
  EXPECT_EQ(endOf(ranks), 5);
  RankTimes times = timesOf(ranks[0], endOf(ranks));
  EXPECT_EQ(times.kernels(), 4);
  EXPECT_EQ(times.exchanges, 3);
  EXPECT_EQ(times.exposed, 1);
  EXPECT_EQ(times.bubble, 0);
}

// The same on one stream: nothing is hidden.
TEST(Engine, OneStreamHidesNothing) {
  std::vector<RankTasks> ranks = {
      {kernel(1), exchange(0, 3), kernel(2), kernel(1)}};
  ASSERT_TRUE(play(ranks));
  EXPECT_EQ(endOf(ranks), 7);
  EXPECT_EQ(timesOf(ranks[0], 7).exposed, 3);
}

// Two ranks: the first comes to the meeting at 1, the second at 4. The wait of
// the first is no communication.
TEST(Engine, AMeetingStartsWhenAllHaveCome) {
  std::vector<RankTasks> ranks = {{kernel(1), exchange(0, 2, 7), kernel(1)},
                                  {kernel(4), exchange(0, 2, 7), kernel(3)}};
  ASSERT_TRUE(play(ranks));
  EXPECT_EQ(ranks[0][1].start, 4);
  EXPECT_EQ(ranks[1][1].start, 4);
  EXPECT_EQ(endOf(ranks), 9);
  RankTimes first = timesOf(ranks[0], 9), second = timesOf(ranks[1], 9);
  EXPECT_EQ(first.kernels(), 2);
  EXPECT_EQ(first.exposed, 2);
  EXPECT_EQ(first.bubble, 5);
  EXPECT_EQ(second.bubble, 0);
}

// Exchanges of one stream keep their order, those of two streams need not.
TEST(Engine, ExchangesOfAStreamKeepTheirOrder) {
  std::vector<RankTasks> ranks = {
      {kernel(5), exchange(1, 1, -1, {0}), exchange(1, 1), exchange(2, 1)}};
  ASSERT_TRUE(play(ranks));
  EXPECT_EQ(ranks[0][2].start, 6);
  EXPECT_EQ(ranks[0][3].start, 0);
}

// Each waits for what the other does later.
TEST(Engine, RanksThatWaitForEachOtherAreAnError) {
  std::vector<RankTasks> ranks = {{exchange(0, 1, 1), exchange(0, 1, 2)},
                                  {exchange(0, 1, 2), exchange(0, 1, 1)}};
  Status status = play(ranks);
  EXPECT_FALSE(status);
  EXPECT_EQ(status.message(),
            "ranks wait for each other for ever: rank 0 at 'exchange'");
}

// The parts are all of the time.
TEST(Engine, PartsAddUp) {
  std::vector<RankTasks> ranks;
  for (int r = 0; r < 3; ++r) {
    RankTasks tasks;
    for (int i = 0; i < 20; ++i) {
      tasks.push_back(kernel(0.5 + r));
      tasks.push_back(exchange(1, 0.7, i, {int(tasks.size()) - 1}));
      if (i % 3 == r)
        tasks.push_back(kernel(0.1, {int(tasks.size()) - 1}));
    }
    ranks.push_back(std::move(tasks));
  }
  std::vector<RankTasks> again = ranks;
  ASSERT_TRUE(play(ranks));
  ASSERT_TRUE(play(again));
  double step = endOf(ranks);
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankTimes times = timesOf(ranks[r], step);
    EXPECT_NEAR(times.kernels() + times.exposed + times.bubble, step, 1e-9);
    for (size_t t = 0; t < ranks[r].size(); ++t)
      EXPECT_EQ(ranks[r][t].start, again[r][t].start);
  }
}

} // namespace
} // namespace tandem::simulate
