//===- WeightProducts.h - the products of which a weight is a factor ------===//
#ifndef TANDEM_PASSES_COMMON_WEIGHTPRODUCTS_H
#define TANDEM_PASSES_COMMON_WEIGHTPRODUCTS_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// A linear or a matmul of which a weight, or its transpose, is the right
/// factor: the same one for all batches, where there are some.
struct WeightProduct {
  mlir::Operation *op;
  mlir::Value factor; ///< with two dimensions
  bool isTransposed;  ///< the weight as it lies is [in, out]
};

/// A parameter of floats with two dimensions, and what reads it.
struct Weight {
  mlir::BlockArgument argument;
  RoleAttr role;
  llvm::SmallVector<WeightProduct> products;
  mlir::Operation *otherReader = nullptr; ///< one that is no such product
};

/// The weights of `graph` that are the right factor of a product, in the order
/// of its arguments.
llvm::SmallVector<Weight> weightsOfProducts(mlir::func::FuncOp graph);

} // namespace tandem

#endif
