//===- QuantizeProducts.h - products of f8 values -------------------------===//
#ifndef TANDEM_PASSES_PRECISION_QUANTIZEPRODUCTS_H
#define TANDEM_PASSES_PRECISION_QUANTIZEPRODUCTS_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Is told of each product that is replaced, what takes its place, and what its
/// f8 values are computed in.
using ProductObserver = llvm::function_ref<void(
    mlir::Operation *product, mlir::Operation *made, llvm::StringRef why)>;

/// What the pass does (Passes.td).
mlir::LogicalResult quantizeProducts(mlir::ModuleOp module,
                                     ProductObserver observer = nullptr);

} // namespace tandem

#endif
