//===- ReplaceTagged.h - formulas in place of ops that are tagged ---------===//
#ifndef TANDEM_PASSES_OPTIMIZE_REPLACETAGGED_H
#define TANDEM_PASSES_OPTIMIZE_REPLACETAGGED_H

#include "ir/Expr.h"

namespace tandem {

/// Replaces an op of one result by what `formula` makes in front of it; none
/// leaves the op. What the op was tagged with (ir/Tags.h)
/// holds for what is computed instead; that it is saved, for the result alone.
/// Returns whether it was replaced.
bool replaceTagged(mlir::Operation *op,
                   llvm::function_ref<Expr(mlir::OpBuilder &)> formula);

} // namespace tandem

#endif
