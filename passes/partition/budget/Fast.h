//===- Fast.h - good sets for graphs of any size --------------------------===//
//
// A set is which values are saved for the backward; bytes and seconds are those
// of Problem.h. tests/budget/Exact.h finds the best set of a small graph.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_BUDGET_FAST_H
#define TANDEM_PASSES_PARTITION_BUDGET_FAST_H

#include "passes/partition/budget/Problem.h"

namespace tandem::budget {

struct Solution {
  Set saved;
  Evaluation evaluation;
};

/// Returns the set with the shortest step found whose peak is at most `budget`
/// bytes; where none is found, that with the least peak. Sets come from
/// smallest cuts at rising prices of a byte and from checkpoints along the
/// forward; a local search by evaluation improves them, value by value, or in
/// large graphs by values that are the same in blocks that repeat.
Solution solveFast(const Problem &problem, int64_t budget);

/// Returns sets from the least peak found to the shortest step, `points` or
/// more: with rising peaks the steps are shorter. `seeds` are sets to start
/// from as well; peaks above theirs are not looked for.
std::vector<Solution> findChain(const Problem &problem, unsigned points,
                                const std::vector<Set> &seeds = {});

/// Returns checkpoints along the forward and nothing else, `most` sets of them
/// at most: those with the lowest peaks. That is where a peak depends the most
/// on how ops become kernels, which a problem does not know; all are worth a
/// try.
std::vector<Solution> findCheckpoints(const Problem &problem, unsigned most);

/// Returns those of which no other is at least as fast with at most the same
/// peak, by rising peak.
std::vector<Solution> paretoChain(std::vector<Solution> solutions);

} // namespace tandem::budget

#endif
