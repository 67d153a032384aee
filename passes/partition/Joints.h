//===- Joints.h - the functions that a partition divides ------------------===//
#ifndef TANDEM_PASSES_PARTITION_JOINTS_H
#define TANDEM_PASSES_PARTITION_JOINTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// @joint and @grad_joint of a module; null where there is none.
struct Joints {
  mlir::func::FuncOp joint, gradJoint;
};

/// Returns the joints of a module, as the phase optimize leaves them. Fails,
/// with every problem, where a function of such a name is no joint.
mlir::FailureOr<Joints> findJoints(mlir::ModuleOp module);

/// True if what `joint` saves has been chosen: it says `tandem.saved_by`.
bool isChosen(mlir::func::FuncOp joint);

} // namespace tandem

#endif
