//===- MatmulIndex.h - the dimensions of a matrix product's code ----------===//
//
// The dimensions are those of the result, [batch..., m, n], and k after them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_MATMULINDEX_H
#define TANDEM_PASSES_LOWER_COMMON_MATMULINDEX_H

#include "passes/lower/common/Anchor.h"

namespace tandem::lower {

struct MatmulIndex {
  /// Of a kernel's anchor, a matmul.
  static MatmulIndex of(mlir::Operation *anchor);

  llvm::SmallVector<mlir::AffineExpr> dims;
  llvm::SmallVector<int64_t> sizes;
  unsigned m, n, k; ///< dimensions
  /// The indices of the factors.
  llvm::SmallVector<mlir::AffineExpr> lhs, rhs;

  llvm::ArrayRef<int64_t> batchSizes() const {
    return llvm::ArrayRef(sizes).drop_back(3);
  }
  bool isEmpty() const { return llvm::is_contained(sizes, 0); }
};

} // namespace tandem::lower

#endif
