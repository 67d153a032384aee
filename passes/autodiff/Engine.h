//===- Engine.h - reverse accumulation over a graph -----------------------===//
//
// Builds the backward of the ops in front of a place in a block from the ops'
// gradient rules (ir/Pullback.h). Which values need a cotangent is decided
// before anything is built; the engine then walks the ops backward once. It
// knows no op by name but for which operands and results gradients flow
// through, and leaves custom_vjp ops in place: whoever inlines them
// (passes/autodiff/CustomVjp.h) is done with differentiating.
//
// Where a function has several cotangents, each may be undefined
// (passes/autodiff/Definedness.h); sums and rules of several results say so.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_AUTODIFF_ENGINE_H
#define TANDEM_PASSES_AUTODIFF_ENGINE_H

#include "passes/autodiff/Definedness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace tandem {

class GradientEngine {
public:
  /// Values of floating-point type are followed from `sources` up to `end`
  /// through ops that have a gradient; ops in no-grad regions cut. What is
  /// built stands in front of `end`.
  GradientEngine(mlir::func::FuncOp func, mlir::Operation *end,
                 llvm::ArrayRef<mlir::Value> sources);

  /// True if `value` depends on a source.
  bool depends(mlir::Value value) const { return active.contains(value); }

  /// Keeps, of what depends on a source, what leads to `targets`, and reports
  /// every op among it that lacks a gradient. `wanter` names who wants it.
  mlir::LogicalResult
  prune(llvm::ArrayRef<mlir::Value> targets,
        llvm::function_ref<std::string(mlir::Value)> wanter);

  /// Adds a cotangent of `value`: of a target, before build(), when all
  /// cotangents are arguments of the function.
  void seed(mlir::Value value, mlir::Value cotangent);

  /// Builds the backward. What custom backwards read and write of the
  /// function's arguments comes in as arguments behind the cotangents; without
  /// `allowsEffects` that is an error.
  mlir::LogicalResult build(bool allowsEffects);

  /// The cotangent of `value`; null if nothing flows into it.
  mlir::Value cotangent(mlir::Value value) const {
    return cotangents.lookup(value);
  }

  /// What the backward writes: new values by the name of the role, with the
  /// custom_vjp that writes last.
  struct Write {
    mlir::Value value;
    mlir::Operation *by;
  };
  const llvm::MapVector<mlir::StringAttr, Write> &writes() const {
    return written;
  }

private:
  /// True if the gradients of the operands of `op` are zeros, because it has no
  /// element to differentiate; no rule is asked for them.
  bool givesZeros(mlir::Operation *op) const;
  void setZeros(mlir::OpBuilder &builder, mlir::Location loc,
                mlir::Operation *op);
  friend class EnginePullback;

  void accumulate(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value value, mlir::Value cotangent);
  mlir::ArrayAttr definedness(mlir::Value value);
  /// The argument that is `name` as the backward finds it; null if the function
  /// has no such argument.
  mlir::Value argumentInBackward(mlir::StringAttr name);

  mlir::func::FuncOp func;
  mlir::Operation *end;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
  std::optional<Definedness> conditions;
  bool allowsEffects = false;
  /// What the backward finds, or an earlier rule left, in an argument; and in
  /// a rule's private copy of a primal.
  llvm::DenseMap<mlir::StringAttr, mlir::Value> states;
  llvm::DenseMap<mlir::Value, mlir::Value> privateStates;
  llvm::MapVector<mlir::StringAttr, Write> written;
};

} // namespace tandem

#endif
