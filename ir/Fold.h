//===- Fold.h - constants that are known when compiling -------------------===//
#ifndef TANDEM_IR_FOLD_H
#define TANDEM_IR_FOLD_H

#include "mlir/Interfaces/FoldInterfaces.h"

namespace tandem {

/// Folds ops that do not fold themselves.
struct FoldInterface : mlir::DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  mlir::LogicalResult
  fold(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands,
       llvm::SmallVectorImpl<mlir::OpFoldResult> &results) const final;
};

} // namespace tandem

#endif
