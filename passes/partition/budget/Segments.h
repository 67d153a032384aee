//===- Segments.h - checkpoints along the forward -------------------------===//
#ifndef TANDEM_PASSES_PARTITION_BUDGET_SEGMENTS_H
#define TANDEM_PASSES_PARTITION_BUDGET_SEGMENTS_H

#include "passes/partition/budget/Problem.h"

namespace tandem::budget {

/// The forward as a sequence that can be cut between any two ops: what crosses
/// the cut is saved, all else is made again, segment by segment (T. Chen et
/// al., Training Deep Nets with Sublinear Memory Cost, 2016). Where the cuts
/// lie is decided by dynamic programming over all positions, in linear time for
/// each limit.
class Segments {
public:
  explicit Segments(const Problem &problem);

  /// Returns what crosses the cuts with the fewest bytes among those whose
  /// segments each make at most `limit` bytes again.
  Set checkpoints(int64_t limit) const;
  /// What a single segment would make again.
  int64_t total() const { return again.back(); }

private:
  const Problem &problem;
  /// At each position (before an op of the forward): what crosses it, and what
  /// was made before it that the backward reads.
  std::vector<int64_t> crossing, again;
  std::vector<unsigned> lastRead; ///< of each value, in the forward
};

} // namespace tandem::budget

#endif
