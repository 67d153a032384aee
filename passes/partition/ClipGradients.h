//===- ClipGradients.h - gradients as an optimizer sees them --------------===//
#ifndef TANDEM_PASSES_PARTITION_CLIPGRADIENTS_H
#define TANDEM_PASSES_PARTITION_CLIPGRADIENTS_H

#include "passes/partition/ClipSpec.h"

#include "mlir/IR/Builders.h"

namespace tandem {

/// A gradient of `@update`, and the axes of the mesh that cut it.
struct UpdateGradient {
  mlir::Value value;
  mlir::ArrayAttr sharding; ///< null: whole
};

/// Returns the L2 norm of all gradients that are defined, a scalar: the root of
/// the sum, in f32 (f64 if one of them is f64), of all squares. It does not
/// depend on the ranks that have the pieces, but for the order of additions.
mlir::Value createNorm(mlir::OpBuilder &builder, mlir::Location loc,
                       llvm::ArrayRef<UpdateGradient> gradients);

/// Returns whether the number `norm` is finite: NaN is not.
mlir::Value createIsFinite(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value norm);

/// Returns the gradient, clipped; `norm` is that of all of them, and is not
/// looked at where values are clipped. The formulas are those of
/// torch.nn.utils.clip_grad_norm_ and clip_grad_value_.
mlir::Value createClipped(mlir::OpBuilder &builder, mlir::Location loc,
                          const ClipSpec &spec, mlir::Value gradient,
                          mlir::Value norm);

/// Whether rows of this shape have several elements, which have a mean.
bool hasCenter(llvm::ArrayRef<int64_t> shape);

/// Returns the gradient less its mean over all dimensions but the first, if it
/// has more than one (Yong et al. 2020, arXiv:2004.01461).
mlir::Value createCentralized(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value gradient);

} // namespace tandem

#endif
