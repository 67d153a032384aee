//===- PickedElements.h - sums over rows that are one element of them -----===//
#ifndef TANDEM_PASSES_LOWER_CPU_LOOPS_PICKEDELEMENTS_H
#define TANDEM_PASSES_LOWER_CPU_LOOPS_PICKEDELEMENTS_H

#include "passes/plan/LoopNest.h"

#include <optional>

namespace tandem::lower::cpu {

/// The sum over the nest's reduced dimension of `value` where the dimension's
/// index is the integer `at`, and of zeros elsewhere: a label's logit.
struct PickedElement {
  mlir::Value value;
  /// Does not depend on the reduced dimension.
  mlir::Value at;
  llvm::SmallVector<mlir::AffineExpr> atIndex;
};

/// Nothing unless `reduction` is such a sum, over the one reduced dimension
/// `dim` of `nest`.
std::optional<PickedElement>
findPickedElement(const LoopNest::Reduction &reduction, const LoopNest &nest,
                  unsigned dim);

} // namespace tandem::lower::cpu

#endif
