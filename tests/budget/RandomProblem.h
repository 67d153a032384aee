//===- RandomProblem.h - training steps made up from a seed ---------------===//
//
// Like those of real models: a forward of contractions, pointwise ops,
// reductions, views and a few ops that may not run again, with residual
// connections; a backward that reads operands and results of the forward and
// adds up cotangents. The same seed gives the same problem on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_BUDGET_RANDOMPROBLEM_H
#define TANDEM_TESTS_BUDGET_RANDOMPROBLEM_H

#include "passes/partition/budget/Problem.h"

namespace tandem::budget {

/// A step of at most `mostOps` ops, forward and backward together.
Problem randomProblem(uint64_t seed, unsigned mostOps);

/// `layers` equal blocks of a transformer's kind, eight forward ops each.
Problem layeredProblem(unsigned layers);

} // namespace tandem::budget

#endif
