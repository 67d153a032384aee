//===- IndexMath.h - index expressions with known ranges ------------------===//
//
// Where an element of a kernel's value comes from is an affine map of the
// kernel's loop indices. Each index `i` of a loop is known to be in
// [0, sizes[i]), which removes almost every division that reshapes bring:
// simplified maps are equal where the elements are the same.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_INDEXMATH_H
#define TANDEM_PASSES_PLAN_INDEXMATH_H

#include "ir/Dialect.h"

#include "mlir/IR/AffineExpr.h"

namespace tandem {

/// The least and greatest value of `expr`.
struct IndexRange {
  int64_t low, high;
};
IndexRange rangeOf(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> sizes);

/// `expr` as a sum of multiples of dimensions, quotients and remainders, with
/// what the ranges make certain removed. Expressions without symbols only.
mlir::AffineExpr simplifyIndex(mlir::AffineExpr expr,
                               llvm::ArrayRef<int64_t> sizes);

/// The row-major position of `index` in a tensor of `shape`.
mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> index,
                           llvm::ArrayRef<int64_t> shape,
                           mlir::MLIRContext *context);
/// The index in `shape` of a row-major position.
llvm::SmallVector<mlir::AffineExpr> delinearize(mlir::AffineExpr position,
                                                llvm::ArrayRef<int64_t> shape,
                                                llvm::ArrayRef<int64_t> sizes);

/// The multiple with which dimension `dim` enters `expr`; nothing if it enters
/// through a quotient or remainder.
std::optional<int64_t> coefficientOf(mlir::AffineExpr expr, unsigned dim);

/// A condition on loop indices: `expr` is 0, or at least 0.
struct IndexGuard {
  mlir::AffineExpr expr;
  bool isEqual;
  bool operator==(const IndexGuard &other) const {
    return expr == other.expr && isEqual == other.isEqual;
  }
};

/// The element of a tensor that loop indices select, and the conditions under
/// which it exists.
struct Place {
  llvm::SmallVector<mlir::AffineExpr, 4> index;
  llvm::SmallVector<IndexGuard, 2> guards;
  bool operator==(const Place &other) const {
    return index == other.index && guards == other.guards;
  }
};

/// The element of the operand that the element of the view's result at `place`
/// is. `inside` are the conditions (beyond those of `place`) under which there
/// is one: outside of them the element is the fill value. Returns false if
/// there is never one.
bool throughView(ViewOpInterface view, const Place &place,
                 llvm::ArrayRef<int64_t> sizes, Place &source,
                 llvm::SmallVectorImpl<IndexGuard> &inside);

} // namespace tandem

#endif
