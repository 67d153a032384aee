//===- ScatterParts.h - what take_grad and scatter have in common ---------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_SCATTERPARTS_H
#define TANDEM_PASSES_LOWER_COMMON_SCATTERPARTS_H

#include "passes/lower/common/Anchor.h"

namespace tandem::lower {

/// An op that combines rows into the rows of a table, by index.
struct ScatterParts {
  static ScatterParts of(mlir::Operation *anchor);

  llvm::ArrayRef<int64_t> table, indices; ///< shapes
  unsigned indexOperand, updateOperand;
  std::optional<unsigned> tableOperand; ///< none: zeros
  Combine combine;
  /// The type of the elements while rows are combined into them, and how they
  /// are stored meanwhile: f16 and bf16 are rounded at the end, bools are
  /// bytes.
  mlir::Type kept, stored;

  /// The table's element at `index`, in its compute type, before any update.
  mlir::Value before(AnchorKernel &kernel,
                     llvm::ArrayRef<mlir::AffineExpr> dims,
                     llvm::ArrayRef<mlir::Value> index) const;
  /// `x` after `update` has been combined into it.
  mlir::Value combined(Code &code, mlir::Value x, mlir::Value update) const;
};

} // namespace tandem::lower

#endif
