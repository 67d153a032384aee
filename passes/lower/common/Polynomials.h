//===- Polynomials.h - functions of f32 without libm ----------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_POLYNOMIALS_H
#define TANDEM_PASSES_LOWER_COMMON_POLYNOMIALS_H

#include "mlir/IR/PatternMatch.h"

namespace tandem::lower {

/// Patterns that compute functions of f32, scalars or vectors, with arithmetic
/// alone, so that loops of them are vectorized. NaN stays NaN, and infinities
/// give what they give in libm.
void populatePolynomials(mlir::RewritePatternSet &patterns);

/// 2^x of an f32 or a vector of them, in fewer steps: what is below 2^-125 is
/// 0, and what is above 2^127 may be infinity. Accuracy: 1.2 units in the last
/// place; 2^0 is 1. NaN stays NaN.
mlir::Value emitExp2(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

} // namespace tandem::lower

#endif
