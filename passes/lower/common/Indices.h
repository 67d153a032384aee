//===- Indices.h - shapes and indices of anchors' operands ----------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_INDICES_H
#define TANDEM_PASSES_LOWER_COMMON_INDICES_H

#include "passes/lower/common/AnchorCode.h"

#include "mlir/IR/AffineExpr.h"

namespace tandem::lower {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor) {
  return llvm::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}

int64_t product(llvm::ArrayRef<int64_t> sizes);

/// d0, d1, ...
llvm::SmallVector<mlir::AffineExpr> dimensions(mlir::MLIRContext *context,
                                               unsigned n);

/// The index of element `flat` (row-major) of `shape`.
llvm::SmallVector<mlir::Value> split(const Code &code, mlir::Value flat,
                                     llvm::ArrayRef<int64_t> shape);

/// An integer as an `index`.
mlir::Value toIndex(const Code &code, mlir::Value integer);

} // namespace tandem::lower

#endif
