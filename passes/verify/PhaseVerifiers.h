//===- PhaseVerifiers.h - what holds between two phases -------------------===//
//
// A verifier a phase (passes/verify): what the next phases rely on. It runs
// behind the passes of its phase, also in release builds, and on every module
// that is read back at the phase. What it finds is a fault of the compiler or
// of an edited module, never of a model, but for `capture`, where a model comes
// in. Each emits every problem.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_VERIFY_PHASEVERIFIERS_H
#define TANDEM_PASSES_VERIFY_PHASEVERIFIERS_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// capture: one function, @graph; only ops of the dialect; every argument and
/// result has a role, every op a place in the model.
mlir::LogicalResult verifyCapture(mlir::ModuleOp module);
/// functionalize: no op of @graph has an effect, and nothing is a ref.
mlir::LogicalResult verifyFunctionalize(mlir::ModuleOp module);
/// joint: cotangents belong to outputs and updates, and gradients to arguments
/// that require one; every op of a joint is forward or backward, and what is
/// forward depends on nothing backward. The roles of all programs agree.
mlir::LogicalResult verifyJoint(mlir::ModuleOp module);
/// optimize: what holds after joint still does.
mlir::LogicalResult verifyOptimize(mlir::ModuleOp module);
/// partition: programs take what others of them save or prepare; @forward has
/// no cotangent and no gradient; no op says any more what is to be saved.
mlir::LogicalResult verifyPartition(mlir::ModuleOp module);
/// plan: programs take what others of them save or prepare; values that live at
/// once lie apart; `tandem.step_memory` is what follows from the programs.
mlir::LogicalResult verifyPlan(mlir::ModuleOp module);
/// lower: the same, and launches agree with the functions of their kernels.
mlir::LogicalResult verifyLower(mlir::ModuleOp module);

/// Runs the verifier of the phase called `phase`.
mlir::LogicalResult verifyAfter(mlir::ModuleOp module, llvm::StringRef phase);

/// Stamps `module` with the phase that a pass has just made, and verifies it.
mlir::LogicalResult leavePhase(mlir::ModuleOp module, llvm::StringRef phase);

//===----------------------------------------------------------------------===//
// For passes between two verifiers
//===----------------------------------------------------------------------===//

/// Checks the joints of a module, where it has some, as the passes of the phase
/// partition find them, whatever else is in it.
mlir::LogicalResult checkJoints(mlir::ModuleOp module);

/// Checks that every function of a module has a body of one block, and roles.
mlir::LogicalResult checkSignatures(mlir::ModuleOp module);

/// Checks that the programs of a module take what others of them save or
/// prepare, by name and type: what an edit of the printed module breaks. Some
/// programs may be missing.
mlir::LogicalResult checkHandedValues(mlir::ModuleOp module);

} // namespace tandem

#endif
