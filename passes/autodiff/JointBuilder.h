//===- JointBuilder.h - a graph and its backward in one function ----------===//
#ifndef TANDEM_PASSES_AUTODIFF_JOINTBUILDER_H
#define TANDEM_PASSES_AUTODIFF_JOINTBUILDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Turns `graph`, which has no composite op and no `tandem.grad`, into @joint:
/// after its arguments one cotangent per target, then what the backward finds
/// in arguments; after its results one gradient per argument that requires grad
/// and gets one, then what the backward writes. Its custom_vjps are left in.
///
/// The targets are the output `loss`, or without one the output 'loss', or else
/// every differentiable output; and the visible updates of inputs.
mlir::LogicalResult buildJoint(mlir::ModuleOp module, mlir::func::FuncOp graph,
                               llvm::StringRef loss);

/// Builds @grad_joint behind `joint`, whose custom_vjps are left in: the joint
/// of a graph that takes the arguments and cotangents of `joint` (the inputs
/// "cotangent of o") and gives its gradients (the outputs "grad of w"). What
/// its backward finds and writes of argument s is the argument "backward of s"
/// of that graph. All cotangents of `joint` are taken to be given.
mlir::FailureOr<mlir::func::FuncOp> buildGradJoint(mlir::ModuleOp module,
                                                   mlir::func::FuncOp joint);

} // namespace tandem

#endif
