//===- FoldNorms.h - scales behind convolutions, in their filters ---------===//
#ifndef TANDEM_PASSES_PARTITION_FOLDNORMS_H
#define TANDEM_PASSES_PARTITION_FOLDNORMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Makes what follows each convolution of @evaluate and has a number for each
/// plane, of params and states (sums, differences and products, as of a batch
/// norm that infers), one filter `w * scale` and a `shift` that is added. Both
/// say `tandem.prepared`. Of f32 and f64.
void foldNorms(mlir::func::FuncOp evaluate);

} // namespace tandem

#endif
