//===- Evaluator.h - runs whole functions in double -----------------------===//
//
// Evaluates a function of the dialect at any phase before `lower`: captured
// programs with refs (views of a ref share its storage), graphs, joints, the
// programs made by partition, and kernels. Slow and readable: the oracle that
// every other way to run a program is compared with.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_EVALUATOR_H
#define TANDEM_IR_REFERENCE_EVALUATOR_H

#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem::reference {

/// Returns the results of `func` for these arguments. An argument or result of
/// ref type stands for the value that its storage holds at the call or at the
/// return. `refsAfter`, where given, receives one array per argument: what a
/// ref argument's storage holds at the return, the argument itself otherwise.
///
/// Fails, with a diagnostic at the function or op, where an argument has the
/// wrong shape and where ops have no reference (all of them are named).
mlir::FailureOr<llvm::SmallVector<Array>>
evaluate(mlir::func::FuncOp func, llvm::ArrayRef<Array> arguments,
         llvm::SmallVectorImpl<Array> *refsAfter = nullptr);

} // namespace tandem::reference

#endif
