//===- RunConditions.h - which cotangents a program's ops wait for --------===//
//
// A backward may be called with some cotangents undefined. What can then not be
// computed, and what nobody wants then, does not run. A condition is a list of
// lists of cotangents (their outputs' names): of each list at least one must be
// defined. A program runs only if at least one of its cotangents is defined; a
// condition that follows from this is left out, so that a program with one
// cotangent has none. The same holds for @update and its gradients.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_RUNCONDITIONS_H
#define TANDEM_PASSES_PLAN_RUNCONDITIONS_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

class RunConditions {
public:
  /// Reads a program's body, before it has kernels. Emits an error for each op
  /// whose condition names a cotangent that is no argument.
  static mlir::FailureOr<RunConditions> of(mlir::func::FuncOp func);

  /// The condition under which the op runs: its operands are defined and
  /// somebody wants a result. Null: always. Equal conditions are equal
  /// attributes.
  mlir::ArrayAttr operator[](mlir::Operation *op) const {
    return runs.lookup(op);
  }
  /// The condition under which a gradient is defined, or an update happens.
  mlir::ArrayAttr ofResult(unsigned index) const { return results[index]; }
  /// What runs instead of an op some of whose operands may be undefined (as in
  /// the manifest; positions are those of operands, -1 means zeros). Null: the
  /// op alone.
  mlir::ArrayAttr choices(mlir::Operation *op) const {
    return alternatives.lookup(op);
  }

private:
  llvm::DenseMap<mlir::Operation *, mlir::ArrayAttr> runs, alternatives;
  llvm::SmallVector<mlir::ArrayAttr> results;
};

} // namespace tandem

#endif
