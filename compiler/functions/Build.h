//===- Build.h - what builders of functions share -------------------------===//
//
// Moves, reductions and lookups of tensors that are written once. Each takes
// and gives null after a mistake, which has been said then; what it is given
// otherwise has been checked, but for sizes of results, which it checks.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_BUILD_H
#define TANDEM_COMPILER_FUNCTIONS_BUILD_H

#include "compiler/functions/Function.h"

#include <limits>

namespace tandem::functions {

using Sizes = llvm::ArrayRef<int64_t>;
using List = llvm::SmallVector<int64_t>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Lists of sizes and dimensions.

/// The product of sizes; more than kMaxElements is kMaxElements + 1.
int64_t productOf(Sizes sizes);
/// 0, 1, ... n - 1.
List upTo(int64_t n);
/// `list` without its entry `i`.
List without(Sizes list, int64_t i);
/// `list` with entry `i` replaced.
List with(Sizes list, int64_t i, int64_t value);
/// All parts one after the other.
List joined(std::initializer_list<Sizes> parts);

// Elements.

mlir::Type elementOf(const Expr &x);
bool isFloat(const Expr &x);
bool isBool(const Expr &x);
/// What floats of operand 0's type are computed in: at least f32.
mlir::Type computeType(const Expr &x);
/// `x` in its compute type.
Expr wide(const Expr &x);
/// Fails unless the operands from `first` on have one element type.
mlir::LogicalResult expectOneType(Call &call, size_t first = 0);
/// All operands, which must have floats of one type, in the compute type;
/// empty after a mistake.
llvm::SmallVector<Expr> wideOperands(Call &call);
/// All operands, of one element type, in one shape; empty after a mistake.
llvm::SmallVector<Expr> stretchedOperands(Call &call);
/// The attribute as a number that `x`'s elements can be: of integers a whole
/// one, small enough to be exact.
double numberOf(Call &call, llvm::StringRef name, double otherwise,
                const Expr &x);
/// Results as a call returns them.
CallResults results(std::initializer_list<Expr> values);
/// `formula` of operand 0 (floats) in the compute type, rounded once.
template <typename Formula> CallResults widened(Call &call, Formula formula) {
  if (mlir::failed(call.expectFloat(0)) || call.failed())
    return mlir::failure();
  Expr y = formula(wide(call[0]));
  if (!y)
    return mlir::failure();
  return results({y.cast(elementOf(call[0]))});
}

// Comparisons and their uses.

Expr isNaN(const Expr &x);
Expr isLess(const Expr &x, const Expr &y);
Expr isLess(const Expr &x, double y);
Expr isEqual(const Expr &x, const Expr &y);
Expr isEqual(const Expr &x, double y);
Expr isNot(const Expr &x);
/// `x` where its number is not `at`, elsewhere `instead`, and no gradient.
Expr replaced(const Expr &x, double at, double instead);
/// The square root, whose gradient at 0 is 0.
Expr rootOrZero(const Expr &x);
Expr absolute(Call &call, const Expr &x);
/// As a number: 0 or 1.
Expr indicator(const Expr &condition, mlir::Type element);

// Moving elements.

Expr reshaped(Call &call, const Expr &x, Sizes shape);
Expr permuted(Call &call, const Expr &x, Sizes permutation);
/// Dimension `from` becomes dimension `to` of the result.
Expr moved(Call &call, const Expr &x, int64_t from, int64_t to);
/// `count` elements from `start` on along `dim`, each `step` (at least 1) after
/// the last.
Expr sliced(Call &call, const Expr &x, int64_t dim, int64_t start,
            int64_t count, int64_t step = 1);
/// `low` and `high` elements `fill` around each dimension.
Expr padded(Call &call, const Expr &x, Sizes low, Sizes high, double fill = 0);
Expr paddedAlong(Call &call, const Expr &x, int64_t dim, int64_t low,
                 int64_t high, double fill = 0);
Expr concatenated(Call &call, llvm::ArrayRef<Expr> parts, int64_t dim);
Expr reversed(Call &call, const Expr &x, Sizes dims);
/// Inserts dimensions of 1 so that they are `dims` of the result.
Expr unsqueezed(Call &call, const Expr &x, Sizes dims);
/// `x`, dimension i of which is dims[i] of the result, repeated to `shape`.
Expr along(Call &call, const Expr &x, Sizes shape, Sizes dims);
/// Elements at known indices along `dim`.
Expr picked(Call &call, const Expr &x, int64_t dim, Sizes indices);
/// Each element its index along `dim`.
Expr indices(Call &call, mlir::Type element, Sizes shape, int64_t dim);

// Lookups by data. An index outside gives NaN (of integers and bools 0).

/// Negative indices count from `size` on; in i64. Where one is outside, `valid`
/// (unless null) becomes false.
Expr wrapped(Call &call, const Expr &index, int64_t size,
             Expr *valid = nullptr);
/// Elements along `dim` at `index`, whose dimensions take that one's place.
Expr taken(Call &call, const Expr &x, int64_t dim, const Expr &index);
/// `updates` combined into rows of `table`: "set", "add", "mul", "min", "max".
Expr scattered(Call &call, const Expr &table, const Expr &index,
               const Expr &updates, llvm::StringRef combine);

// Reductions and products.

/// `op` ("reduce_sum", ...) over `dims`, which stay as 1 with `keep`.
Expr reduced(Call &call, llvm::StringRef op, const Expr &x, Sizes dims,
             bool keep = false);
/// The index of the largest along `dim`, i64: the first of equal ones, or the
/// last.
Expr indexOfLargest(Call &call, const Expr &x, int64_t dim, bool last = false,
                    bool smallest = false);
/// The matrix product of the last two dimensions; the leading ones are equal.
Expr matrixProduct(Call &call, const Expr &a, const Expr &b,
                   bool transposeA = false, bool transposeB = false);

} // namespace tandem::functions

#endif
