//===- ChooseMethods.h - the methods of a program's kernels ---------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_CHOOSEMETHODS_H
#define TANDEM_PASSES_LOWER_COMMON_CHOOSEMETHODS_H

#include "passes/lower/common/Method.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem::lower {

/// Writes into each kernel of `func` what `choose` says of it: the schedule,
/// and the scratch. Returns how many have a method; fails once all were asked.
mlir::FailureOr<int64_t> chooseMethods(
    mlir::func::FuncOp func,
    llvm::function_ref<mlir::FailureOr<ChosenMethod>(KernelOp)> choose);

} // namespace tandem::lower

#endif
