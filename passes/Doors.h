//===- Doors.h - what holds between two phases ----------------------------===//
//
// Each phase begins by checking the stamp of the phase before it and ends with
// its door: a small verification of what the next phases rely on. Doors are
// always checked, also in release builds. What a door finds is a fault of the
// compiler or of an edited module, never of a model.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_DOORS_H
#define TANDEM_PASSES_DOORS_H

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

/// Checks what a module must satisfy after `phase` (one of functionalize,
/// joint, optimize, partition; other names have no door here and pass), and
/// reports everything that is wrong.
mlir::LogicalResult checkDoor(mlir::ModuleOp module, llvm::StringRef phase);

/// Checks that the programs of a module take what others of them save or
/// prepare, by name and type: what an edit of the printed module breaks.
mlir::LogicalResult checkHandedValues(mlir::ModuleOp module);

/// Checks the programs of a module that was read at `phase`, which is plan or
/// lower: their names, what they hand to each other, what they say of the same
/// values.
mlir::LogicalResult checkPrograms(mlir::ModuleOp module, llvm::StringRef phase);

/// Stamps `module` with the phase that a pass has just made, and checks its
/// door.
mlir::LogicalResult leavePhase(mlir::ModuleOp module, llvm::StringRef phase);

} // namespace tandem

#endif
