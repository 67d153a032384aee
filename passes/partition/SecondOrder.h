//===- SecondOrder.h - a backward that can be differentiated --------------===//
#ifndef TANDEM_PASSES_PARTITION_SECONDORDER_H
#define TANDEM_PASSES_PARTITION_SECONDORDER_H

#include "passes/partition/Programs.h"

namespace tandem {

/// What a partition must know of @grad_joint, whose backward finds of arguments
/// no more than what that of the joint `first` finds.
JointView viewOfGradJoint(const JointView &first, mlir::func::FuncOp gradJoint);

/// Divides @grad_joint into @grad_forward, which does what @backward does and
/// keeps what its own backward needs, and @grad_backward. @grad_forward takes
/// what @forward saved where it has a use for it, and computes the rest again
/// from the arguments; @grad_backward takes what @grad_forward saved,
/// cotangents and all.
class SecondOrder {
public:
  /// `second` is of @grad_joint (viewOfGradJoint()), which saves `secondSaved`.
  /// `firstSaved` is what the joint of `first` saves; arguments that only
  /// @grad_forward needs, and that do not keep their value, are added.
  SecondOrder(const JointView &first, JointView second, SavedValues secondSaved,
              SavedValues &firstSaved);

  /// Builds both in front of @grad_joint. `names` are those of what the joint
  /// saves.
  void build(const SavedNames &names);

private:
  JointView view;
  /// What @grad_forward takes of what the joint saved: values of @grad_joint,
  /// and those of the joint that they are.
  llvm::MapVector<mlir::Value, mlir::Value> given;
  llvm::DenseSet<mlir::Value> onHost; ///< those of the joint
  SavedValues saved;
};

} // namespace tandem

#endif
