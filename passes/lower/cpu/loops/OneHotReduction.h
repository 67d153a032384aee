//===- OneHotReduction.h - sums over rows that are one element of them ----===//
#ifndef TANDEM_PASSES_LOWER_CPU_LOOPS_ONEHOTREDUCTION_H
#define TANDEM_PASSES_LOWER_CPU_LOOPS_ONEHOTREDUCTION_H

#include "passes/plan/LoopNest.h"

#include <optional>

namespace tandem::lower::cpu {

/// The sum over the nest's reduced dimension of `value` where the dimension's
/// index is the integer `at`, and of zeros elsewhere: a label's logit.
struct OneHotReduction {
  mlir::Value value;
  /// Does not depend on the reduced dimension.
  mlir::Value at;
  llvm::SmallVector<mlir::AffineExpr> atIndex;
};

/// Nothing unless `reduction` is such a sum, over the one reduced dimension
/// `dim` of `nest`.
std::optional<OneHotReduction>
findOneHotReduction(const LoopNest::Reduction &reduction, const LoopNest &nest,
                    unsigned dim);

} // namespace tandem::lower::cpu

#endif
