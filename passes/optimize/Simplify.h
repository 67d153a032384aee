//===- Simplify.h - rewrites that keep every bit --------------------------===//
#ifndef TANDEM_PASSES_OPTIMIZE_SIMPLIFY_H
#define TANDEM_PASSES_OPTIMIZE_SIMPLIFY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Folds and canonicalizes the ops of a differentiated function, until nothing
/// changes, and erases those that nothing uses. Equal ops stay apart.
void simplifyOps(mlir::func::FuncOp func);

} // namespace tandem

#endif
