//===- HalfConversions.h - f16 and bf16 without calls ---------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_HALFCONVERSIONS_H
#define TANDEM_PASSES_LOWER_COMMON_HALFCONVERSIONS_H

#include "mlir/IR/PatternMatch.h"

namespace tandem::lower {

/// Patterns for conversions between f16 or bf16 and wider types that LLVM would
/// make calls of the compiler's library, which kernels must not need: from and
/// to f64 by way of f32, rounded once all the same; to bf16 by integer
/// arithmetic; and, unless the processor has instructions for it (`hasHalves`),
/// between f16 and f32 so too.
void populateHalfConversions(mlir::RewritePatternSet &patterns, bool hasHalves);

/// Those from integers alone, for targets that have all others.
void populateIntegersToHalf(mlir::RewritePatternSet &patterns);

} // namespace tandem::lower

#endif
