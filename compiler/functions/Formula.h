//===- Formula.h - formulas that functions share --------------------------===//
//
// On Exprs of floats, all of one type where there are several. Each is stable
// where its textbook form overflows or cancels, and none of its branches makes
// an infinity that a gradient would multiply by 0.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_FORMULA_H
#define TANDEM_COMPILER_FUNCTIONS_FORMULA_H

#include "compiler/functions/Call.h"
#include "ir/ops/Composite.h"

#include "llvm/ADT/Sequence.h"

namespace tandem::formula {

/// 0, 1, ... up to `rank`.
inline llvm::SmallVector<int64_t> dimsUpTo(int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

/// The elements of x in dimensions `from` and on: 1 of none.
inline int64_t sizeFrom(const Expr &x, int64_t from) {
  int64_t size = 1;
  for (int64_t d : x.shape().drop_front(from))
    size *= d;
  return size;
}

Expr isGreater(const Expr &x, double bound);
Expr isLess(const Expr &x, double bound);
Expr equals(const Expr &x, const Expr &y);
using tandem::abs;
using tandem::floor;
using tandem::log1p;
using tandem::logicalNot;
Expr relu(const Expr &x);
/// log(1 + exp(x)).
Expr softplus(const Expr &x);
/// Within [low, high]; the gradient passes at the bounds.
Expr clamp(const Expr &x, const Expr &low, const Expr &high);
/// x to a power that is known: products where it is small.
Expr power(const Expr &x, double exponent);
/// sum to the power 1 / p, for sum >= 0; where that is 0, so is the gradient.
Expr root(const Expr &sum, double p);
/// |x| to the power p, summed over `dims`, to the power 1 / p; where that is 0,
/// so is the gradient.
Expr normOver(const Expr &x, double p, llvm::ArrayRef<int64_t> dims);
Expr mean(const Expr &x, llvm::ArrayRef<int64_t> dims);

/// Operand i in the element type `type`; null if it is absent.
Expr wide(Call &call, size_t i, mlir::Type type);

/// The mean or the sum of all elements, or each, by the attribute `reduction`.
Expr reduced(Call &call, const Expr &loss);
/// The attribute `reduction`: "mean" (the default), "sum" or "none".
llvm::StringRef reduction(Call &call);

} // namespace tandem::formula

#endif
