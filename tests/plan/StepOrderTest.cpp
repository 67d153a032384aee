//===- StepOrderTest.cpp - orders and packings, without a program ---------===//
//
// What is promised for any graph and any blocks is checked on random ones of
// fixed seeds; for small graphs the best order is found by trying all.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/StepOrder.h"
#include "passes/plan/Pack.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace tandem;

namespace {

/// Steps each of which makes one value of earlier ones; some orders more.
StepGraph randomGraph(unsigned seed, unsigned count) {
  std::mt19937 random(seed);
  StepGraph graph;
  graph.steps.resize(count);
  for (unsigned step = 0; step < count; ++step) {
    StepGraph::Value made{static_cast<int64_t>(64 + random() % 20 * 64),
                          {step},
                          /*isGiven=*/false};
    graph.steps[step].values.push_back(graph.values.size());
    for (unsigned i = 0; i < 2 && step > 0; ++i) {
      unsigned from = step - 1 - random() % std::min(step, 6u);
      if (llvm::is_contained(graph.values[from].steps, step))
        continue;
      graph.values[from].steps.push_back(step);
      graph.steps[step].values.push_back(from);
      graph.addEdge(from, step);
    }
    if (step > 3 && random() % 8 == 0)
      graph.addEdge(random() % step, step);
    graph.values.push_back(made);
  }
  return graph;
}

std::vector<unsigned> asWritten(const StepGraph &graph) {
  std::vector<unsigned> order(graph.steps.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void expectOrder(const StepGraph &graph, const std::vector<unsigned> &order) {
  ASSERT_EQ(order.size(), graph.steps.size());
  std::vector<size_t> position(order.size(), order.size());
  for (size_t i = 0; i < order.size(); ++i)
    position[order[i]] = i;
  for (unsigned step = 0; step < order.size(); ++step) {
    ASSERT_LT(position[step], order.size()) << step << " is missing";
    for (unsigned before : graph.steps[step].before)
      ASSERT_LT(position[before], position[step]) << before << ", " << step;
  }
}

/// The least bytes of all orders that begin with `order`.
int64_t leastBytes(const StepGraph &graph, std::vector<unsigned> &order,
                   std::vector<char> &done) {
  if (order.size() == graph.steps.size())
    return costOf(graph, order).first;
  int64_t least = INT64_MAX;
  for (unsigned step = 0; step < graph.steps.size(); ++step) {
    if (done[step] ||
        !llvm::all_of(graph.steps[step].before,
                      [&](unsigned before) { return done[before]; }))
      continue;
    done[step] = true;
    order.push_back(step);
    least = std::min(least, leastBytes(graph, order, done));
    order.pop_back();
    done[step] = false;
  }
  return least;
}

TEST(Schedule, P17_EveryOrderIsKeptAndNoneCostsMore) {
  int64_t before = 0, after = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    StepGraph graph = randomGraph(seed, 5 + seed);
    std::vector<unsigned> order = orderForMemory(graph);
    expectOrder(graph, order);
    int64_t now = costOf(graph, order).first,
            written = costOf(graph, asWritten(graph)).first;
    EXPECT_LE(now, written) << seed;
    EXPECT_EQ(order, orderForMemory(graph)) << seed;
    before += written;
    after += now;
  }
  EXPECT_LT(after, before * 0.95);
}

TEST(Schedule, SmallGraphsAreNearTheBestOrder) {
  int64_t found = 0, best = 0, written = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    StepGraph graph = randomGraph(seed, 8);
    std::vector<unsigned> order;
    std::vector<char> done(8, false);
    best += leastBytes(graph, order, done);
    found += costOf(graph, orderForMemory(graph)).first;
    written += costOf(graph, asWritten(graph)).first;
  }
  EXPECT_LE(found, best * 1.03);
  EXPECT_GT(written, best * 1.03);
}

/// A forward of `depth` steps, their gradients backwards, an update of each
/// gradient at the end that also waits for one small number.
StepGraph training(unsigned depth) {
  StepGraph graph;
  graph.steps.resize(3 * depth + 1);
  auto value = [&](int64_t bytes, std::initializer_list<unsigned> steps) {
    for (unsigned step : steps)
      graph.steps[step].values.push_back(graph.values.size());
    graph.values.push_back({bytes, steps, false});
    for (unsigned step : llvm::drop_begin(steps))
      graph.addEdge(*steps.begin(), step);
  };
  unsigned number = 2 * depth;
  for (unsigned i = 0; i < depth; ++i) {
    unsigned gradient = 2 * depth - 1 - i, update = 2 * depth + 1 + i;
    value(64, {i, gradient});        // saved
    value(1024, {gradient, update}); // of a weight
    if (i + 1 < depth) {
      value(64, {i, i + 1});
      value(64, {gradient - 1, gradient});
    }
    graph.addEdge(number, update);
  }
  StepGraph::Value small{64, {number}, false};
  for (unsigned i = 0; i < depth; ++i) {
    small.steps.push_back(number + 1 + i);
    graph.steps[number + 1 + i].values.push_back(graph.values.size());
  }
  graph.steps[number].values.push_back(graph.values.size());
  graph.values.push_back(small);
  return graph;
}

TEST(Schedule, P18_AnUpdateRunsAsSoonAsItsGradientIsThere) {
  StepGraph graph = training(50);
  std::vector<unsigned> order = orderForMemory(graph);
  expectOrder(graph, order);
  EXPECT_GT(costOf(graph, asWritten(graph)).first, 50 * 1024);
  // Two gradients at most, what is saved, and a few small ones.
  EXPECT_LT(costOf(graph, order).first, 2 * 1024 + 50 * 64 + 4 * 64);
}

/// Many large programs: the time grows with the size.
TEST(Schedule, TwentyThousandSteps) {
  StepGraph graph = training(6667);
  expectOrder(graph, orderForMemory(graph));
  StepGraph other = randomGraph(7, 20000);
  expectOrder(other, orderForMemory(other));
}

std::vector<PackedBlock> randomBlocks(unsigned seed, int64_t count) {
  std::mt19937 random(seed);
  std::vector<PackedBlock> blocks;
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = i / 2, life = random() % (random() % 4 ? 6 : 60);
    blocks.push_back(
        {static_cast<int64_t>(1 + random() % 40) * 64, first, first + life});
  }
  return blocks;
}

TEST(Pack, BlocksInUseAtOnceAreApart) {
  int64_t bytes = 0, least = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::vector<PackedBlock> blocks = randomBlocks(seed, 4 * seed);
    int64_t total = packBlocks(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const PackedBlock &x = blocks[i];
      EXPECT_GE(x.offset, 0);
      EXPECT_LE(x.offset + x.bytes, total);
      for (size_t j = 0; j < i; ++j) {
        const PackedBlock &y = blocks[j];
        bool meetInTime = x.first <= y.last && y.first <= x.last;
        bool meet =
            x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
        EXPECT_FALSE(meetInTime && meet) << seed << ": " << i << ", " << j;
      }
    }
    std::vector<PackedBlock> again = randomBlocks(seed, 4 * seed);
    EXPECT_EQ(packBlocks(again), total);
    EXPECT_GE(total, mostInUse(blocks));
    bytes += total;
    least += mostInUse(blocks);
  }
  EXPECT_LE(bytes, least * 1.05);
}

TEST(Pack, TheLargestFirstIsNotAlwaysTheBest) {
  // With the largest first there is room for the third only above both.
  std::vector<PackedBlock> blocks = {
      {128, 5, 6}, {256, 2, 5}, {256, 1, 3}, {192, 4, 5}};
  EXPECT_EQ(packBlocks(blocks), mostInUse(blocks));
}

TEST(Pack, NothingNeedsNothing) {
  std::vector<PackedBlock> none;
  EXPECT_EQ(packBlocks(none), 0);
  EXPECT_EQ(mostInUse(none), 0);
}

} // namespace
