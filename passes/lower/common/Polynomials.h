//===- Polynomials.h - functions of f32 without libm ----------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_POLYNOMIALS_H
#define TANDEM_PASSES_LOWER_COMMON_POLYNOMIALS_H

#include "mlir/IR/PatternMatch.h"

namespace tandem::lower {

/// Patterns that compute functions of f32, scalars or vectors, with arithmetic
/// alone, so that loops of them are vectorized. NaN stays NaN, and infinities
/// give what they give in libm.
void populatePolynomials(mlir::RewritePatternSet &patterns);

} // namespace tandem::lower

#endif
