//===- DoubleFunctions.h - functions of f64 without libm ------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_DOUBLEFUNCTIONS_H
#define TANDEM_PASSES_LOWER_COMMON_DOUBLEFUNCTIONS_H

#include "passes/lower/common/Formula.h"

#include "mlir/IR/PatternMatch.h"

namespace tandem::lower {

/// Patterns that compute exp, log, log1p, sin, cos, tanh, erf and powf of f64,
/// and powf of f32, scalars only, with arithmetic alone. Results are at most 2
/// units in the last place from the exact ones (powf of f32: correctly rounded
/// but for ties nearer than 1e-13); zeros, denormals, infinities and NaN are
/// treated as in libm.
void populateDoubleFunctions(mlir::RewritePatternSet &patterns);
/// log1p alone, which MLIR's own conversion makes log(1 + x) of: nothing is
/// left of a small x.
void populateDoubleLog1p(mlir::RewritePatternSet &patterns);

/// e^(x + low), where |low| is much less than 1.
Formula exponential(const Formula &x, const Formula &low);
/// sin(x), or cos(x).
Formula sine(const Formula &x, bool isCosine);

} // namespace tandem::lower

#endif
