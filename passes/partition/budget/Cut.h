//===- Cut.h - the cheapest set at given prices ---------------------------===//
#ifndef TANDEM_PASSES_PARTITION_BUDGET_CUT_H
#define TANDEM_PASSES_PARTITION_BUDGET_CUT_H

#include "passes/partition/budget/Problem.h"

#include "llvm/ADT/ArrayRef.h"

namespace tandem::budget {

/// What is already settled of a value.
enum class Choice : uint8_t { Open, Saved, Again };

struct Cut {
  Set saved;
  /// The price of what is saved and the time of what runs again; never more
  /// than that of any other set that keeps to the choices.
  double cost = 0;
};

/// Returns the set with the least sum of prices (in seconds, one for each
/// value) of what is saved and times of what runs again: a smallest cut between
/// what is there and what the backward needs. Prices are rounded down to a
/// fraction of 2^-40 of all times together, so that the cost is a bound. With
/// `choices`, one for each value, only sets that keep to them count.
Cut cheapestCut(const Problem &problem, llvm::ArrayRef<double> prices,
                llvm::ArrayRef<Choice> choices = {});

} // namespace tandem::budget

#endif
