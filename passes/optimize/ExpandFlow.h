//===- ExpandFlow.h - branches and loops as ops without regions -----------===//
#ifndef TANDEM_PASSES_OPTIMIZE_EXPANDFLOW_H
#define TANDEM_PASSES_OPTIMIZE_EXPANDFLOW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Replaces `if` and `scan` of a differentiated function by ops that compute
/// both branches and all iterations, and select. They have the discardable
/// attributes of the op (its tags). Where the target can run them, large loops
/// stay, and those whose end is not known; elsewhere these are errors that
/// begin with 'unsupported'.
mlir::LogicalResult expandFlow(mlir::func::FuncOp func);

/// Makes the constants that regions keep in memory operands of their ops.
void hoistConstants(mlir::func::FuncOp func);

} // namespace tandem

#endif
