//===- RankRowsTest.cpp - rows of group X on ranks of threads -------------===//
#include "tests/shard/RankRows.h"

#include "runtime/comm/ThreadPeers.h"

#include <gtest/gtest.h>

#include <thread>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int ranks = 3;

class RankRows : public ::testing::TestWithParam<const RankRow *> {};

TEST_P(RankRows, Row) {
  auto peers = comm::makeThreadPeers(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      SCOPED_TRACE("rank " + std::to_string(rank));
      GetParam()->run(
          Connection(peers[size_t(rank)], std::chrono::seconds(60)));
    });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<const RankRow *> pointers() {
  std::vector<const RankRow *> rows;
  for (const RankRow &row : rankRows())
    rows.push_back(&row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Threads, RankRows, ::testing::ValuesIn(pointers()),
                         [](const auto &info) {
                           return std::string(info.param->name);
                         });

} // namespace
