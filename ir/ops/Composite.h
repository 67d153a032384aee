//===- Composite.h - formulas that decompositions share -------------------===//
//
// Functions on Expr for more than one composite op. All expect float tensors.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_COMPOSITE_H
#define TANDEM_IR_OPS_COMPOSITE_H

#include "ir/Expr.h"
#include "ir/ops/Inference.h"
#include "ir/reference/Array.h"

namespace tandem::composite {

/// The widest of the tensors' float types, at least f32: what a composite
/// computes in.
mlir::Type computeType(mlir::ValueRange values);

/// `value` as an Expr at `b` in the element type `type`.
Expr in(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
        mlir::Type type);

/// Each element its index along `dim`, in `shape`.
Expr iota(const Expr &at, mlir::Type element, llvm::ArrayRef<int64_t> shape,
          int64_t dim);
/// The narrowest of i32 and i64 that counts to `size`.
mlir::Type indexType(mlir::MLIRContext *context, int64_t size);

/// x minus its maximum along `dim`, which takes no part in the gradient: the
/// result does not depend on what is subtracted.
Expr shiftByMax(const Expr &x, int64_t dim);
/// What each of `parts` along `dim` is of their `sum`: its product with the
/// sum's reciprocal, at most 1.5 units in the last place off, since there is
/// one reciprocal a line and a quotient each would take vectors 16 cycles.
Expr shares(const Expr &parts, const Expr &sum, int64_t dim);
Expr softmax(const Expr &x, int64_t dim);
/// Scores [..., T, S] of attention, -infinity where a position is not seen: by
/// `mask` of bools, or what later positions are if `isCausal`. A mask of floats
/// is added. Null: there is none.
Expr maskScores(const Expr &scores, bool isCausal, const Expr &mask);
/// softmax along the last dimension; rows of -infinity give 0.
Expr safeSoftmax(const Expr &x);
Expr reduceMean(const Expr &x, llvm::ArrayRef<int64_t> dims);

/// "mean", "sum" or "none" of the rows of a loss.
mlir::LogicalResult verifyReduction(mlir::Operation *op,
                                    llvm::StringRef reduction);
/// Fails unless `value`, the attribute `name`, is finite and in [low, high).
mlir::LogicalResult verifyNumber(mlir::Operation *op, llvm::StringRef name,
                                 double value, double low, double high);

} // namespace tandem::composite

namespace tandem::reference {

/// Calls `body(base, step, count)` for every line of `shape` along `dim`: its
/// elements are at base, base + step, ...
template <typename Body>
void forEachLine(llvm::ArrayRef<int64_t> shape, int64_t dim, Body body) {
  int64_t outer = 1, step = 1, count = shape[dim];
  for (int64_t d = 0, n = shape.size(); d < n; ++d)
    (d < dim ? outer : step) *= d == dim ? 1 : shape[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < step; ++i)
      body(o * count * step + i, step, count);
}

} // namespace tandem::reference

#endif
