//===- Indexing.h - from indices to places in row-major order -------------===//
//
// take and scatter know one index, for rows. What frameworks index otherwise is
// brought to that: a place counts rows of some leading dimensions as if they
// were one; -1 stands for whatever is outside.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_INDEXING_H
#define TANDEM_COMPILER_FUNCTIONS_INDEXING_H

#include "compiler/functions/Build.h"

namespace tandem::functions {

/// The place of (index[0], index[1], ...) in dimensions of `sizes`, in i64.
Expr linearPlaces(Call &call, Sizes sizes, llvm::ArrayRef<Expr> index);
/// The place in a tensor of `shape` that each index along `dim` means, whose
/// own place gives the other dimensions.
Expr placesAlong(Call &call, Sizes shape, int64_t dim, const Expr &index);
/// The places of tuples (their last dimension) after `batch` dimensions, which
/// both have.
Expr placesOfTuples(Call &call, Sizes shape, const Expr &tuples, int64_t batch);

/// Fails unless operand `index` has integers of a shape within that of operand
/// `x`, but for dimension `dim`.
mlir::LogicalResult expectIndexAlong(Call &call, size_t x, size_t index,
                                     int64_t dim);

/// One tensor of indices for each of the attribute `dims` of operand 0.
struct IndexedDims {
  /// The tensors are the operands from `first` on.
  static std::optional<IndexedDims> of(Call &call, size_t first);

  List dims;
  List shape;   ///< of the indices, broadcast
  List order;   ///< `dims`, then the others
  List rest;    ///< sizes of the others
  int64_t rows; ///< product of the sizes of `dims`
  Expr places;  ///< in those
  int64_t at;   ///< where the indices' dimensions stand in the result

  /// From [indices, rest] to the result.
  List toResult() const;
};

} // namespace tandem::functions

#endif
