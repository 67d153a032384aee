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

/// Replaces the composite ops that can do what they mean at once
/// (CompositeOpInterface::fuse), where the module is compiled for a target, all
/// of which have kernels for it, and `func` is differentiated at most once.
void fuseComposites(mlir::func::FuncOp func);

/// Turns every composite op of `func` into its form for inference.
void setInference(mlir::func::FuncOp func);

/// Erases the ops of `func` whose results nothing uses. One walk.
void eraseDeadOps(mlir::func::FuncOp func);

} // namespace tandem

#endif
