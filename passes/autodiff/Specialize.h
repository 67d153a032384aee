//===- Specialize.h - a backward for certain cotangents -------------------===//
#ifndef TANDEM_PASSES_AUTODIFF_SPECIALIZE_H
#define TANDEM_PASSES_AUTODIFF_SPECIALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Settles in `func` what depends on which cotangents are defined: those named
/// by `defined`, of which there is at least one unless the function has none.
/// The other cotangents go away as arguments, what is undefined then as
/// results, and no `accumulate`, `or_zero` and `if_defined` is left.
void specializeCotangents(mlir::func::FuncOp func,
                          llvm::ArrayRef<llvm::StringRef> defined);
/// The same where all are defined.
void specializeCotangents(mlir::func::FuncOp func);

} // namespace tandem

#endif
