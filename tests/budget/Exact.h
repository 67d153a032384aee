//===- Exact.h - the best set of a small graph ----------------------------===//
//
// The oracle for solveFast(). Branch and bound over the values that can be
// saved, the last first: what a value is needed for is then already settled, so
// that its lifetime is known.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_BUDGET_EXACT_H
#define TANDEM_TESTS_BUDGET_EXACT_H

#include "passes/partition/budget/Fast.h"

#include <optional>

namespace tandem::budget {

struct ExactResult {
  /// Nothing if no set has a peak of at most the budget.
  std::optional<Solution> best;
  /// False if the search was given up after `mostNodes`: `best` may not be.
  bool isProven = true;
  unsigned nodes = 0;
};

/// Returns the set with the shortest step whose peak is at most `budget` bytes.
/// `known`, if given, is a set to start from.
ExactResult solveExactly(const Problem &problem, int64_t budget,
                         const Set *known = nullptr,
                         unsigned mostNodes = 1000000);

} // namespace tandem::budget

#endif
