//===- Strategies.h - how an op is computed by the ranks of an axis -------===//
//
// A strategy is one way to compute an op along one axis of the mesh without
// communication: what each rank needs of the operands, and what it then has of
// the results. All ops have one: everything whole, which each rank computes.
// The others are what an op's kind allows, and make no difference but in bytes.
// Whoever chooses one looks at axes one by one: the strategies of two axes can
// be combined as long as the units of a dimension agree.
//
// A piece can have padding (Distribution.h). Where elements along a dimension
// stay apart, what the op makes of padding is padding. Where it mixes them, the
// strategy says what must be in its place first.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_SHARD_STRATEGIES_H
#define TANDEM_PASSES_SHARD_STRATEGIES_H

#include "passes/shard/Distribution.h"

namespace tandem {

/// What takes the place of padding in an operand, along the dimension that is
/// cut.
enum class Fill {
  Any,     ///< it stays: no other element sees it
  Zero,    ///< of a sum
  Lowest,  ///< of a maximum
  Highest, ///< of a minimum
  None     ///< there must be no padding
};

struct Strategy {
  llvm::SmallVector<Placement, 3> operands;
  llvm::SmallVector<Placement, 1> results;
  /// The table of a take is cut along its rows: each rank takes the rows that
  /// it has, and zeros for others.
  bool masksRows = false;
  /// Of all operands alike.
  Fill fill = Fill::Any;

  /// The same with units that are `times` as long.
  Strategy scaled(int64_t times) const;
};

/// Returns the strategies of an op of whole values; the first one has
/// everything whole. None fits a rank's piece of an op: sizes are those of one
/// process.
llvm::SmallVector<Strategy> strategiesOf(mlir::Operation *op);

/// The dimensions of a reshape that can be cut together: dimension `from` of
/// the operand and `to` of the result are the outermost of groups with the same
/// elements. They are cut at the same elements if they are cut at multiples of
/// their units.
struct ReshapedDim {
  int64_t from, to;
  int64_t fromUnit = 1, toUnit = 1;
};
llvm::SmallVector<ReshapedDim> outermostDims(llvm::ArrayRef<int64_t> from,
                                             llvm::ArrayRef<int64_t> to);

} // namespace tandem

#endif
