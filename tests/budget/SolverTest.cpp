//===- SolverTest.cpp - the solvers of the memory budget ------------------===//
//
// The exact solver against all sets of tiny problems, the fast one against the
// exact, both against the definition of a peak.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/budget/Fast.h"
#include "tests/budget/Exact.h"
#include "tests/budget/RandomProblem.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace tandem::budget;

namespace {

/// Four ops in a row, a contraction first; the backward reads all results.
Problem row() {
  Problem p;
  Value free;
  free.isFree = true;
  unsigned x = p.addValue(free);
  std::vector<unsigned> made;
  for (unsigned i = 0; i < 4; ++i) {
    Value v;
    v.bytes = v.ownBytes = v.againBytes = 100;
    Op op;
    op.operands = {i ? made.back() : x};
    made.push_back(p.addValue(v));
    op.results = {made.back()};
    op.seconds = op.againSeconds = i ? 1 : 10;
    op.flops = i ? 0 : 1000;
    p.addOp(op, true);
  }
  unsigned dy = kNone;
  for (unsigned i = 4; i-- > 0;) {
    Value v;
    v.ownBytes = 10;
    Op op;
    op.operands = {made[i]};
    if (dy != kNone)
      op.operands.push_back(dy);
    dy = p.addValue(v);
    op.results = {dy};
    op.seconds = 2;
    p.addOp(op, false);
  }
  p.residentBytes = 1000;
  return p;
}

Set setOf(const Problem &p, std::initializer_list<unsigned> values) {
  Set set(p.values.size());
  for (unsigned value : values)
    set.set(value);
  return set;
}

/// The fastest of all sets within the budget, one by one.
std::optional<Evaluation> tryAll(const Problem &p, int64_t budget) {
  Simulator simulator(p);
  const auto &choices = simulator.choices();
  std::optional<Evaluation> best;
  for (uint64_t bits = 0; bits < 1ull << choices.size(); ++bits) {
    Set set(p.values.size());
    for (unsigned i = 0; i < choices.size(); ++i)
      if (bits >> i & 1)
        set.set(choices[i]);
    Evaluation evaluation = simulator.run(set);
    if (evaluation.peak <= budget &&
        (!best || evaluation.seconds < best->seconds))
      best = evaluation;
  }
  return best;
}

TEST(Simulator, SaveEverything) {
  Problem p = row();
  Evaluation all = Simulator(p).run(Set(p.values.size(), true));
  EXPECT_DOUBLE_EQ(all.seconds, 10 + 3 + 4 * 2);
  // All four results, and the first cotangent.
  EXPECT_EQ(all.peak, 1000 + 400 + 10);
  EXPECT_EQ(all.savedBytes, 400);
  EXPECT_EQ(all.recomputedFlops, 0);
}

TEST(Simulator, MakeEverythingAgain) {
  Problem p = row();
  Evaluation none = Simulator(p).run(Set(p.values.size()));
  EXPECT_DOUBLE_EQ(none.seconds, 2 * 13 + 4 * 2);
  // The first op of the backward needs the last value: the whole row is made
  // again, and kept for those that follow.
  EXPECT_EQ(none.peak, 1000 + 400 + 10);
  EXPECT_EQ(none.savedBytes, 0);
  EXPECT_EQ(none.recomputedFlops, 1000);
}

TEST(Simulator, Checkpoint) {
  Problem p = row();
  Simulator simulator(p);
  // Values 1 to 4 are those of the row.
  Evaluation half = simulator.run(setOf(p, {1, 3, 4}));
  EXPECT_DOUBLE_EQ(half.seconds, 13 + 1 + 8);
  EXPECT_EQ(half.recomputedFlops, 0);
  EXPECT_TRUE(simulator.runsAgain(1));
  EXPECT_FALSE(simulator.runsAgain(0));
  // Three saved and the first cotangent. Where the second is made, one of the
  // three is gone; so is another where a value is made again.
  EXPECT_EQ(half.peak, 1000 + 300 + 10);
}

TEST(Simulator, WhatNobodyNeedsIsNotSaved) {
  Problem p = row();
  p.ops.back().operands = {p.ops.back().operands[1]}; // reads no value 1
  Simulator simulator(p);
  Evaluation all = simulator.run(Set(p.values.size(), true));
  EXPECT_EQ(all.savedBytes, 300);
  EXPECT_FALSE(simulator.saved().test(1));
}

TEST(Simulator, TagsAndOpsThatRunOnce) {
  Problem p = row();
  p.values[2].mustSave = true;
  p.values[4].mustRecompute = true;
  p.ops[0].mayNotRepeat = true;
  Simulator simulator(p);
  simulator.run(Set(p.values.size()));
  EXPECT_EQ(simulator.saved(), setOf(p, {1, 2}));
  simulator.run(Set(p.values.size(), true));
  EXPECT_EQ(simulator.saved(), setOf(p, {1, 2, 3}));
  EXPECT_EQ(simulator.choices(), llvm::SmallVector<unsigned>({3}));
}

TEST(Simulator, LazyOpsRunWhereTheyAreWanted) {
  Problem p = row();
  p.ops[3].isLazy = true;
  Simulator simulator(p);
  Evaluation saved = simulator.run(Set(p.values.size(), true));
  EXPECT_DOUBLE_EQ(saved.seconds, 13 + 8);
  Evaluation late = simulator.run(setOf(p, {1, 2, 3}));
  EXPECT_DOUBLE_EQ(late.seconds, 13 + 8);
  EXPECT_EQ(late.recomputedFlops, 0);
}

TEST(Exact, RefusesWhatCannotBe) {
  Problem p = row();
  EXPECT_FALSE(solveExactly(p, 1000).best);
  EXPECT_TRUE(solveExactly(p, 1410).best);
}

TEST(Exact, AgreesWithAllSets) {
  unsigned compared = 0, refused = 0;
  for (uint64_t seed = 0; compared < 300; ++seed) {
    Problem p = randomProblem(seed, 24);
    if (Simulator(p).choices().size() > 12)
      continue;
    ++compared;
    int64_t most = Simulator(p).run(Set(p.values.size(), true)).peak;
    for (double part : {0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
      auto budget = static_cast<int64_t>(part * static_cast<double>(most));
      std::optional<Evaluation> best = tryAll(p, budget);
      ExactResult exact = solveExactly(p, budget);
      ASSERT_TRUE(exact.isProven);
      ASSERT_EQ(exact.best.has_value(), best.has_value())
          << "seed " << seed << " budget " << budget;
      if (!best) {
        ++refused;
        continue;
      }
      EXPECT_LE(exact.best->evaluation.peak, budget);
      EXPECT_NEAR(exact.best->evaluation.seconds, best->seconds,
                  1e-8 * best->seconds)
          << "seed " << seed << " budget " << budget;
    }
  }
  EXPECT_GT(refused, 100u);
}

/// 500 graphs of up to 60 ops: the fast method is within 3 % of the exact one
/// in the time of a step, at each budget between the least peak and that of
/// the fastest step.
TEST(Fast, P10_WithinThreePercentOfTheExact) {
  double worst = 0;
  unsigned solved = 0, unproven = 0;
  unsigned long nodes = 0;
  for (uint64_t seed = 1000; seed < 1500; ++seed) {
    Problem p = randomProblem(seed, 60);
    ASSERT_LE(p.ops.size(), 60u);
    int64_t least = solveFast(p, 0).evaluation.peak;
    int64_t most = solveFast(p, INT64_MAX).evaluation.peak;
    for (int percent : {0, 10, 25, 50, 75}) {
      int64_t budget = least + (most - least) * percent / 100;
      Solution fast = solveFast(p, budget);
      ASSERT_LE(fast.evaluation.peak, budget) << "seed " << seed;
      ExactResult exact = solveExactly(p, budget, &fast.saved, 200000);
      nodes += exact.nodes;
      unproven += !exact.isProven;
      ++solved;
      ASSERT_TRUE(exact.best);
      double gap = fast.evaluation.seconds / exact.best->evaluation.seconds - 1;
      worst = std::max(worst, gap);
      EXPECT_LE(gap, 0.03) << "seed " << seed << " budget " << budget << " at "
                           << percent << " %";
    }
    // Nothing has a lower peak than what the fast method calls the least.
    ExactResult lower = solveExactly(p, least - 1, nullptr, 200000);
    EXPECT_FALSE(lower.best)
        << "seed " << seed << ": " << least << " is not the least peak, "
        << lower.best->evaluation.peak << " is possible";
  }
  std::cout << "worst gap " << 100 * worst << " % over " << solved
            << " problems, " << unproven << " not proven, " << nodes
            << " nodes\n";
  EXPECT_EQ(unproven, 0u);
}

} // namespace
