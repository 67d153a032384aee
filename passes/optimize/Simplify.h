//===- Simplify.h - rewrites that keep every bit --------------------------===//
#ifndef TANDEM_PASSES_OPTIMIZE_SIMPLIFY_H
#define TANDEM_PASSES_OPTIMIZE_SIMPLIFY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace tandem {

/// Folds and canonicalizes the ops of a differentiated function, until nothing
/// changes, and erases those that nothing uses. Equal ops stay apart.
/// `listener` hears of what is rewritten, not of what nothing uses.
void simplifyOps(mlir::func::FuncOp func,
                 mlir::RewriterBase::Listener *listener = nullptr);

} // namespace tandem

#endif
