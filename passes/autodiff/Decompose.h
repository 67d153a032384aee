//===- Decompose.h - composites become simpler ops ------------------------===//
#ifndef TANDEM_PASSES_AUTODIFF_DECOMPOSE_H
#define TANDEM_PASSES_AUTODIFF_DECOMPOSE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Replaces every composite op of `func`, also in regions of its ops, by what
/// it means, and what that means, until none is left but
/// those of which all results are empty. The new ops have the
/// discardable attributes of the old (its tags) and its location.
mlir::LogicalResult decomposeComposites(mlir::func::FuncOp func);

} // namespace tandem

#endif
