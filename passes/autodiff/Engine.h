//===- Engine.h - reverse accumulation over a graph -----------------------===//
//
// Builds the backward of a block of tensor ops from the ops' gradient rules
// (ir/Pullback.h). Which values need a cotangent is decided before anything is
// built; the engine then walks the ops backward once. It knows no op by name.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_AUTODIFF_ENGINE_H
#define TANDEM_PASSES_AUTODIFF_ENGINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tandem {

class GradientEngine {
public:
  /// Values of floating-point type are followed from `sources` (arguments that
  /// require grad) through ops that have a gradient; ops in no-grad regions
  /// cut.
  GradientEngine(mlir::func::FuncOp func, llvm::ArrayRef<mlir::Value> sources);

  /// True if `value` depends on a source.
  bool depends(mlir::Value value) const { return active.contains(value); }

  /// Keeps, of what depends on a source, what leads to `targets`, and reports
  /// every op among it that lacks a gradient.
  mlir::LogicalResult prune(llvm::ArrayRef<mlir::Value> targets);

  /// Adds a cotangent of `value`: of a target, before build().
  void seed(mlir::Value value, mlir::Value cotangent);

  /// Builds the backward in front of the function's terminator.
  mlir::LogicalResult build();

  /// The cotangent of `value`; null if nothing flows into it.
  mlir::Value cotangent(mlir::Value value) const {
    return cotangents.lookup(value);
  }

private:
  friend class EnginePullback;

  void accumulate(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value value, mlir::Value cotangent);
  /// A source that `op` depends on, for messages.
  mlir::BlockArgument sourceOf(mlir::Operation *op) const;

  mlir::func::FuncOp func;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
};

} // namespace tandem

#endif
