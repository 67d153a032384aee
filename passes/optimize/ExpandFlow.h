//===- ExpandFlow.h - branches and loops as ops without regions -----------===//
#ifndef TANDEM_PASSES_OPTIMIZE_EXPANDFLOW_H
#define TANDEM_PASSES_OPTIMIZE_EXPANDFLOW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Replaces every `if` and `scan` of a differentiated function by ops that
/// compute both branches and all iterations, and select. They have the
/// discardable attributes of the op (its tags). Of a loop whose end is not
/// known, and of more ops than a program can have, an error that begins with
/// 'unsupported'.
mlir::LogicalResult expandFlow(mlir::func::FuncOp func);

} // namespace tandem

#endif
