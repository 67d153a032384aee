//===- MemoryBudget.cpp - plans that need less memory ---------------------===//
#include "passes/partition/MemoryBudget.h"

#include "passes/partition/budget/Fast.h"
#include "passes/partition/budget/JointProblem.h"
#include "passes/plan/StepMemory.h"

#include "mlir/IR/IRMapping.h"

#include <algorithm>

using namespace mlir;
using namespace tandem;

/// How many partitions are planned: all ops of all of them together are at most
/// so many, and there are at least and at most so many.
static constexpr size_t kMostOps = 50000, kLeastPlans = 6, kMostPlans = 26;

/// The partitions worth planning: spread over the peaks that the problem
/// predicts, the least among them.
static std::vector<budget::Solution> spread(std::vector<budget::Solution> chain,
                                            size_t most) {
  if (chain.size() <= most)
    return chain;
  std::vector<budget::Solution> chosen;
  auto peak = [&](size_t i) { return chain[i].evaluation.peak; };
  int64_t least = peak(0), range = peak(chain.size() - 1) - least;
  for (size_t i = 0, taken = 0; i < chain.size(); ++i) {
    // The first at or above each of `most` steps; at the end all that is left.
    int64_t step = least + range * static_cast<int64_t>(taken) /
                               static_cast<int64_t>(most - 1);
    if (peak(i) < step && chain.size() - i > most - taken)
      continue;
    chosen.push_back(std::move(chain[i]));
    if (++taken == most)
      break;
  }
  return chosen;
}

/// True if a chain can have `y` behind `x`.
static bool follows(const BudgetPoint &y, const BudgetPoint &x) {
  return y.peak > x.peak && y.seconds < x.seconds && y.flops <= x.flops;
}

/// The longest chain from the least peak to the first of the points, or to one
/// that is no worse.
static std::vector<BudgetPoint> longestChain(std::vector<BudgetPoint> points) {
  BudgetPoint end = points.front();
  for (const BudgetPoint &point : points)
    if (point.peak < end.peak && point.seconds <= end.seconds &&
        point.flops <= end.flops)
      end = point;
  llvm::erase_if(points,
                 [&](const BudgetPoint &x) { return !follows(end, x); });
  points.push_back(end);
  llvm::sort(points, [](const BudgetPoint &x, const BudgetPoint &y) {
    return std::make_tuple(x.peak, x.seconds, x.flops, x.savedBytes) <
           std::make_tuple(y.peak, y.seconds, y.flops, y.savedBytes);
  });
  // Of each point the longest chain from the first.
  std::vector<size_t> length(points.size(), 0), before(points.size(), 0);
  length[0] = 1;
  for (size_t i = 1; i < points.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (length[j] > 0 && length[j] + 1 > length[i] &&
          follows(points[i], points[j])) {
        length[i] = length[j] + 1;
        before[i] = j;
      }
  std::vector<BudgetPoint> chain;
  for (size_t i = points.size() - 1;; i = before[i]) {
    chain.push_back(std::move(points[i]));
    if (i == 0)
      break;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

FailureOr<std::vector<BudgetPoint>>
tandem::findBudgetChain(ModuleOp module, const JointView &view,
                        const SavedValues &fastest, Divide divide) {
  budget::JointProblem joint(view);
  budget::Simulator simulator(joint.problem());
  /// Plans a copy of the module.
  auto rehearse = [&](const SavedValues &saved) -> FailureOr<int64_t> {
    IRMapping map;
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone(map));
    SavedValues there;
    for (const auto &[value, reason] : saved)
      there.insert({map.lookup(value), reason});
    if (failed(divide(*copy, there)))
      return failure();
    FailureOr<StepMemory> memory = rehearsePlan(*copy);
    if (failed(memory))
      return failure();
    return memory->peak();
  };
  std::vector<BudgetPoint> points;
  auto add = [&](SavedValues saved, const budget::Set &set) {
    FailureOr<int64_t> peak = rehearse(saved);
    if (failed(peak))
      return failure();
    // More than without a budget is of no use.
    if (!points.empty() && *peak > points.front().peak)
      return success();
    budget::Evaluation evaluation = simulator.run(set);
    points.push_back({std::move(saved), *peak, evaluation.seconds,
                      evaluation.recomputedFlops, evaluation.savedBytes});
    return success();
  };
  budget::Set first = joint.setOf(fastest);
  if (failed(add(fastest, first)))
    return failure();
  size_t plans = std::clamp(kMostOps / (joint.problem().ops.size() + 1),
                            kLeastPlans, kMostPlans);
  std::vector<budget::Solution> chain =
      budget::findChain(joint.problem(), plans, {first});
  simulator.run(first);
  budget::Set known = simulator.saved();
  for (const budget::Solution &solution : spread(std::move(chain), plans))
    if (solution.saved != known &&
        failed(add(joint.savedOf(solution.saved), solution.saved)))
      return failure();
  return longestChain(std::move(points));
}
