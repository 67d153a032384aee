//===- Programs.h - the functions that a joint falls into -----------------===//
#ifndef TANDEM_PASSES_PARTITION_PROGRAMS_H
#define TANDEM_PASSES_PARTITION_PROGRAMS_H

#include "passes/partition/SavedValues.h"

#include "ir/Signature.h"

namespace tandem {

/// Builds @forward in front of the joint: its arguments but the cotangents;
/// its outputs and updates, then what is saved.
mlir::func::FuncOp buildForward(const JointView &view,
                                const SavedValues &saved);

/// Builds @backward in front of the joint: the arguments that it needs, what is
/// saved, the cotangents; the gradients. What is neither an argument nor saved
/// is computed again, just before its first use. `repeated` receives the ops of
/// the joint that both programs have, but for constants.
mlir::func::FuncOp
buildBackward(const JointView &view, const SavedValues &saved,
              llvm::SmallVectorImpl<mlir::Operation *> &repeated);

/// Builds @step, one whole training step, behind @update: forward, backward
/// with a cotangent of 1, update. Its arguments are forward's and the states
/// that only update has; its results the outputs and all updates.
mlir::func::FuncOp buildStep(mlir::func::FuncOp forward,
                             mlir::func::FuncOp backward,
                             mlir::func::FuncOp update);

} // namespace tandem

#endif
