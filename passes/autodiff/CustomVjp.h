//===- CustomVjp.h - custom gradients give way to their forwards ----------===//
#ifndef TANDEM_PASSES_AUTODIFF_CUSTOMVJP_H
#define TANDEM_PASSES_AUTODIFF_CUSTOMVJP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"

namespace tandem {

/// Lets whoever uses a saved result of a custom_vjp that is an input or an
/// output of it use that itself: what was saved can then be read by reference,
/// and is differentiated as what it is. Returns those that no other op than
/// custom backwards, which leave them unchecked, uses behind `lastForward`
/// (null: in the whole function).
llvm::DenseSet<mlir::Value> resolveSavedValues(mlir::func::FuncOp func,
                                               mlir::Operation *lastForward);

/// Replaces every custom_vjp by the ops of its forward. They have the
/// discardable attributes of the op (its tags).
void inlineCustomVjps(mlir::func::FuncOp func);

} // namespace tandem

#endif
