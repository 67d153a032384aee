//===- Products.h - matrix products of any shapes -------------------------===//
//
// After a mistake the result is null, and the call has failed (Call.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_PRODUCTS_H
#define TANDEM_COMPILER_FUNCTIONS_PRODUCTS_H

#include "compiler/functions/Build.h"

namespace tandem::functions {

/// The product of [..., m, k] and [..., k, n] with equal leading dimensions,
/// floats or integers of one type.
Expr batchedProduct(Call &call, const Expr &a, const Expr &b);

/// NumPy's matmul: leading dimensions stretch to each other, a vector is a row
/// on the left and a column on the right. Null where the shapes do not fit.
Expr product(Call &call, Expr a, Expr b);

} // namespace tandem::functions

#endif
