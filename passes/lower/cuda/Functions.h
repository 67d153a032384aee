//===- Functions.h - functions of f32 with the GPU's instructions
//----------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_FUNCTIONS_H
#define TANDEM_PASSES_LOWER_CUDA_FUNCTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace tandem::lower::cuda {

/// Patterns for exp and tanh of f32 scalars, with the approximate instructions
/// for 2^x and 1/x. Results are within 4 units in the last place; those of exp
/// below 2^-125 are 0. NaN and infinities give what they give in libm.
void populateFunctions(mlir::RewritePatternSet &patterns);
/// The same for quotients 1 / (1 + exp(x)), while exp is still an op.
void populateLogistic(mlir::RewritePatternSet &patterns);

} // namespace tandem::lower::cuda

#endif
