//===- Phase.h - where a module is, and what belongs to which pass --------===//
#ifndef TANDEM_PASSES_COMMON_PHASE_H
#define TANDEM_PASSES_COMMON_PHASE_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Checks that `module` is stamped with `phase`, with an error otherwise.
mlir::LogicalResult expectPhase(mlir::ModuleOp module, llvm::StringRef phase);
/// Stamps `module` with `phase`.
void setPhase(mlir::ModuleOp module, llvm::StringRef phase);

/// The tag of an op of a joint: "forward", "backward", or "" where it has none.
llvm::StringRef passOf(mlir::Operation *op);

/// True for what the backward alone takes or gives: cotangents, gradients, and
/// values and updates of the pass backward.
bool isBackward(RoleAttr role);

} // namespace tandem

#endif
