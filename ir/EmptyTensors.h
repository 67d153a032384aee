//===- EmptyTensors.h - tensors without elements
//---------------------------===//
//
// A tensor with a size of 0 has a type and no elements. Programs may have them;
// kernels have none, because what an op makes of nothing is known when
// compiling: nothing, or equal elements.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_EMPTYTENSORS_H
#define TANDEM_IR_EMPTYTENSORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// True for a tensor that has a size of 0.
bool isEmptyTensor(mlir::Type type);
/// True if there are types, all of which are of empty tensors.
bool areEmptyTensors(mlir::TypeRange types);

/// The constant without elements; `type` is empty.
mlir::Value emptyConstant(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type type);

/// Replaces every op of `func` that has an empty operand or result by what it
/// means, constants or another operand, in regions too; ops that have regions
/// stay, and so do composite ops whose results are not empty. Erases ops that
/// nothing uses any more.
void foldEmptyTensors(mlir::func::FuncOp func);

} // namespace tandem

#endif
