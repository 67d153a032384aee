//===- NetworkTest.cpp - what collectives cost, computed by hand ----------===//
#include "tools/simulate/Network.h"

#include <gtest/gtest.h>

namespace tandem::simulate {
namespace {

using artifact::Collective;
using Op = Collective::Op;

LinkRow link(double rate, double latency, int64_t ranks = 0,
             bool isShared = false) {
  LinkRow row;
  row.rate = rate;
  row.latency = latency;
  row.ranks = ranks;
  row.isShared = isShared;
  return row;
}

TEST(Network, GroupsAreWhereTheirRanksAre) {
  LinkRow inside = link(1, 1, 8), between = link(1, 1);
  Network network({{"data", 4}, {"tensor", 4}}, inside, &between, 8, false);
  EXPECT_EQ(network.ranks(), 16);
  // Neighbours along the last axis are neighbours in a machine.
  Group tensor = network.groupOf({"tensor"});
  EXPECT_EQ(tensor.ranks, 4);
  EXPECT_EQ(tensor.machines, 1);
  Group data = network.groupOf({"data"});
  EXPECT_EQ(data.ranks, 4);
  EXPECT_EQ(data.machines, 2);
  EXPECT_EQ(data.ofMachine, 2);
  EXPECT_EQ(network.groupOf({"data", "tensor"}).machines, 2);
  EXPECT_EQ(network.strideOf("data"), 4);
}

// 4 ranks, 100 B/s, 1 s a step: 2 * 3 / 4 * 400 B / 100 B/s + 6 s.
TEST(Network, ARingSendsEachPieceTwice) {
  Network network({{"data", 4}}, link(100, 1, 8), nullptr, 8, false);
  Group group = network.groupOf({"data"});
  ExchangeCost reduced = network.costOf(Op::AllReduce, 400, group);
  EXPECT_DOUBLE_EQ(reduced.seconds, 2 * 0.75 * 4 + 6);
  EXPECT_EQ(reduced.algorithm, "ring");
  EXPECT_DOUBLE_EQ(network.costOf(Op::ReduceScatter, 400, group).seconds,
                   0.75 * 4 + 3);
  // Of an all_gather each rank has a quarter.
  EXPECT_DOUBLE_EQ(network.costOf(Op::AllGather, 100, group).seconds,
                   0.75 * 4 + 3);
}

// Without bytes a tree over many machines has fewer steps than a ring.
TEST(Network, LittleGoesByATree) {
  LinkRow inside = link(1e9, 1e-6, 8), between = link(1e9, 1e-3);
  Network network({{"data", 256}}, inside, &between, 8, false);
  Group group = network.groupOf({"data"});
  EXPECT_EQ(group.machines, 32);
  ExchangeCost cost = network.costOf(Op::AllReduce, 4, group);
  EXPECT_EQ(cost.algorithm, "tree");
  EXPECT_NEAR(cost.seconds, 2 * (7e-6 + 5e-3), 1e-6);
}

// Two machines of 4 ranks: inside 100 B/s, between 10 B/s a rank, no latency.
// A ring goes at min(100, 4 * 10) B/s; the hierarchical way takes
// 2 (3/4 * 800 / 100 + 1/2 * 200 / 10) s, which is longer.
TEST(Network, RanksOfAMachineUseTheirLinksTogether) {
  LinkRow inside = link(100, 0, 4), between = link(10, 0);
  Network network({{"data", 8}}, inside, &between, 4, false);
  ExchangeCost cost =
      network.costOf(Op::AllReduce, 800, network.groupOf({"data"}));
  EXPECT_DOUBLE_EQ(cost.seconds,
                   std::min(2 * 7. / 8 * 800 / 40, 2 * (6. + 10)));
  // One link for all ranks of a machine is a quarter for each.
  LinkRow shared = link(10, 0, 0, true);
  Network less({{"data", 8}}, inside, &shared, 4, false);
  EXPECT_GT(less.costOf(Op::AllReduce, 800, less.groupOf({"data"})).seconds,
            2 * cost.seconds);
}

// What the runtime does on processors: two exchanges, little in one.
TEST(Network, ProcessorsExchangeDirectly) {
  Network network({{"data", 4}}, link(100, 1, 64), nullptr, 64, true);
  Group group = network.groupOf({"data"});
  ExchangeCost much = network.costOf(Op::AllReduce, 8000, group);
  EXPECT_EQ(much.algorithm, "direct");
  EXPECT_DOUBLE_EQ(much.seconds, 2 * (1 + 0.75 * 80));
  EXPECT_DOUBLE_EQ(network.costOf(Op::AllReduce, 100, group).seconds, 1 + 3);
}

TEST(Network, OneRankExchangesNothing) {
  Network network({{"data", 4}}, link(100, 1, 64), nullptr, 64, false);
  EXPECT_EQ(network.costOf(Op::AllReduce, 8000, network.groupOf({})).seconds,
            0);
}

} // namespace
} // namespace tandem::simulate
