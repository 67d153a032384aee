//===- Frozen.h - what inference computes of params and states alone ------===//
#ifndef TANDEM_PASSES_PARTITION_FROZEN_H
#define TANDEM_PASSES_PARTITION_FROZEN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tandem {

/// The values of a program that are the same in every call: they depend on
/// params, states and constants alone. True until the program changes.
class FrozenValues {
public:
  explicit FrozenValues(mlir::func::FuncOp evaluate);

  bool contains(mlir::Value value) const { return frozen.contains(value); }
  /// True if `value` is frozen and depends on a param or state.
  bool dependsOnVariables(mlir::Value value) const {
    return ofVariables.contains(value);
  }

private:
  llvm::DenseSet<mlir::Value> frozen, ofVariables;
};

/// Returns @evaluate where the module asks that what is frozen be computed once
/// (`tandem.prepare`); null where it does not, or has no such program. Fails
/// where the module trains.
mlir::FailureOr<mlir::func::FuncOp> findFrozenProgram(mlir::ModuleOp module);

} // namespace tandem

#endif
