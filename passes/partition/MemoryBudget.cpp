//===- MemoryBudget.cpp - plans that need less memory ---------------------===//
#include "passes/partition/MemoryBudget.h"

#include "passes/partition/DividePasses.h"
#include "passes/partition/SavedMarks.h"
#include "passes/partition/budget/Fast.h"
#include "passes/partition/budget/JointProblem.h"
#include "passes/plan/StepMemory.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>

using namespace mlir;
using namespace tandem;

/// How many partitions are planned at first: all ops of all of them together
/// are at most so many, and there are at least and at most so many. Nearly as
/// many are planned on the way to the least peak.
static constexpr size_t kMostOps = 50000, kLeastPlans = 6, kMostPlans = 26;

/// Values that take so much less than others do not decide a peak.
static constexpr int64_t kMuchSmaller = 100;

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

namespace {

/// Plans copies of a module that save one set or another.
class Rehearsals {
public:
  Rehearsals(ModuleOp module, const JointView &view)
      : module(module), view(view), joint(view), simulator(joint.problem()) {}

  const budget::Problem &problem() const { return joint.problem(); }
  budget::Set setOf(const SavedValues &saved) const {
    return joint.setOf(saved);
  }
  /// Adds the point of a set, unless it has been planned or needs more than the
  /// first one. `saved`: what a partition of the first set saves.
  LogicalResult add(const budget::Set &set, const SavedValues *saved = nullptr);
  /// Looks for a lower peak next to the lowest: with all values of one kind
  /// saved or not saved, the largest first, in at most `tries` plans.
  LogicalResult descend(size_t tries);

  std::vector<BudgetPoint> points;

private:
  FailureOr<int64_t> peakOf(const SavedValues &saved);

  ModuleOp module;
  const JointView &view;
  budget::JointProblem joint;
  budget::Simulator simulator;
  std::vector<budget::Set> planned;
  /// Those of the points.
  std::vector<budget::Set> sets;
};

} // namespace

FailureOr<int64_t> Rehearsals::peakOf(const SavedValues &saved) {
  markSaved(view.joint, saved, kByBudget);
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(rehearsePartition(*copy)))
    return failure();
  FailureOr<StepMemory> memory = rehearsePlan(*copy);
  if (failed(memory))
    return failure();
  return memory->peak();
}

LogicalResult Rehearsals::add(const budget::Set &wanted,
                              const SavedValues *saved) {
  budget::Evaluation evaluation = simulator.run(wanted);
  budget::Set set = simulator.saved();
  if (llvm::is_contained(planned, set))
    return success();
  planned.push_back(set);
  BudgetPoint point = {saved ? *saved : joint.savedOf(set), 0,
                       evaluation.seconds, evaluation.recomputedFlops,
                       evaluation.savedBytes};
  FailureOr<int64_t> peak = peakOf(point.saved);
  if (failed(peak))
    return failure();
  // More than without a budget is of no use.
  if (!points.empty() && *peak > points.front().peak)
    return success();
  point.peak = *peak;
  points.push_back(std::move(point));
  sets.push_back(std::move(set));
  return success();
}

LogicalResult Rehearsals::descend(size_t tries) {
  struct Group {
    int64_t bytes = 0;
    SmallVector<unsigned> values;
  };
  llvm::MapVector<uint64_t, Group> byKind;
  for (unsigned value : simulator.choices()) {
    Group &group = byKind[problem().values[value].kind];
    group.bytes += problem().values[value].bytes;
    group.values.push_back(value);
  }
  SmallVector<Group> groups;
  int64_t largest = 0;
  for (auto &[kind, group] : byKind)
    largest = std::max(largest, group.bytes);
  for (auto &[kind, group] : byKind)
    if (group.bytes * kMuchSmaller > largest)
      groups.push_back(std::move(group));
  llvm::sort(groups, [](const Group &x, const Group &y) {
    return x.bytes != y.bytes ? x.bytes > y.bytes
                              : x.values.front() < y.values.front();
  });
  size_t most = planned.size() + tries;
  for (bool again = true; again && planned.size() < most;) {
    again = false;
    for (const Group &group : groups) {
      if (planned.size() >= most)
        break;
      size_t least = 0;
      for (size_t i = 1; i < points.size(); ++i)
        if (std::make_pair(points[i].peak, points[i].seconds) <
            std::make_pair(points[least].peak, points[least].seconds))
          least = i;
      int64_t peak = points[least].peak;
      budget::Set set = sets[least];
      bool isSaved = llvm::any_of(
          group.values, [&](unsigned value) { return set.test(value); });
      for (unsigned value : group.values)
        isSaved ? (void)set.reset(value) : (void)set.set(value);
      size_t before = points.size();
      if (failed(add(set)))
        return failure();
      again |= points.size() > before && points.back().peak < peak;
    }
  }
  return success();
}

FailureOr<std::vector<BudgetPoint>>
tandem::findBudgetChain(ModuleOp module, const JointView &view,
                        const SavedValues &fastest) {
  Rehearsals rehearsals(module, view);
  budget::Set first = rehearsals.setOf(fastest);
  if (failed(rehearsals.add(first, &fastest)))
    return failure();
  const budget::Problem &problem = rehearsals.problem();
  size_t plans =
      std::clamp(kMostOps / (problem.ops.size() + 1), kLeastPlans, kMostPlans);
  size_t checkpoints = plans / 3;
  std::vector<budget::Solution> candidates =
      spread(budget::findChain(problem, plans, {first}), plans - checkpoints);
  llvm::append_range(candidates, budget::findCheckpoints(problem, checkpoints));
  for (const budget::Solution &solution : candidates)
    if (failed(rehearsals.add(solution.saved)))
      return failure();
  if (failed(rehearsals.descend(plans - kLeastPlans / 2)))
    return failure();
  return longestChain(std::move(rehearsals.points));
}
