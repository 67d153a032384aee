//===- ElementaryFunctions.h - what no target has instructions for --------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_ELEMENTARYFUNCTIONS_H
#define TANDEM_PASSES_LOWER_COMMON_ELEMENTARYFUNCTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace tandem::lower {

/// Patterns that compute expm1, tan, asin, acos, atan, atan2, sinh, cosh and
/// the remainder of f64 and f32, and powers of integers; scalars only, with
/// arithmetic and loops alone. f64: at most 2 units in the last place from the
/// exact results (tan, sinh and cosh: 3), the remainder exact; f32 is computed
/// in f64 and rounded. Zeros, denormals, infinities and NaN are treated as in
/// libm. The exponents of integers are taken as unsigned.
void populateElementaryFunctions(mlir::RewritePatternSet &patterns);

} // namespace tandem::lower

#endif
