//===- ViewChain.h - views as attributes ----------------------------------===//
//
// A chain of views is an array of dictionaries, each an op's own attributes
// with its name: `{op = "permute", permutation = array<i64: 1, 0>}`.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_CAPTURE_VIEWCHAIN_H
#define TANDEM_COMPILER_CAPTURE_VIEWCHAIN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace tandem {

/// Returns the chain that leads from `base` to `ref`; null if it does not.
mlir::ArrayAttr viewChain(mlir::Value base, mlir::Value ref);

/// Makes the views of `chain`, the first of `ref`, and returns the last; or
/// fails with a diagnostic at `loc`.
mlir::FailureOr<mlir::Value> buildViews(mlir::OpBuilder &builder,
                                        mlir::Location loc, mlir::Value ref,
                                        mlir::ArrayAttr chain);

/// Follows the declared aliases of `func` to the storage that each is part of:
/// an alias of an alias becomes one of the storage, and `type` stays only where
/// that is no argument. Emits what does not fit together.
mlir::LogicalResult resolveAliases(mlir::func::FuncOp func);

/// The type of the result of `op` on `ref` where the op does not infer it: a
/// bitcast's, to `element`. Null otherwise.
mlir::Type viewType(llvm::StringRef op, mlir::Type ref, mlir::Type element);

} // namespace tandem

#endif
