//===- Strategies.h - how an op is computed by the ranks of an axis -------===//
//
// A strategy is one way to compute an op along one axis of the mesh without
// communication: what each rank needs of the operands, and what it then has of
// the results. All ops have one: everything whole, which each rank computes.
// The others are what an op's kind allows, and make no difference but in bytes.
// Whoever chooses one looks at axes one by one: the strategies of two axes can
// be combined as long as sizes divide.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_SHARD_STRATEGIES_H
#define TANDEM_PASSES_SHARD_STRATEGIES_H

#include "passes/shard/Distribution.h"

namespace tandem {

struct Strategy {
  llvm::SmallVector<Placement, 3> operands;
  llvm::SmallVector<Placement, 1> results;
  /// The table of a take is cut along its rows: each rank takes the rows that
  /// it has, and zeros for others.
  bool masksRows = false;
};

/// Returns the strategies of an op of whole values; the first one has
/// everything whole. None fits a rank's piece of an op: sizes are those of one
/// process.
llvm::SmallVector<Strategy> strategiesOf(mlir::Operation *op);

/// The dimensions of a reshape that can be cut together: dimension `from` of
/// the operand and `to` of the result are the outermost of groups with the same
/// elements.
struct ReshapedDim {
  int64_t from, to;
};
llvm::SmallVector<ReshapedDim> outermostDims(llvm::ArrayRef<int64_t> from,
                                             llvm::ArrayRef<int64_t> to);

} // namespace tandem

#endif
