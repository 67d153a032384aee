//===- Inference.h - what shape inference functions share
//------------------===//
//
// Inference runs before an op is verified, on whatever a user wrote: sizes and
// attributes may be anything that int64 holds, so sums and products of them are
// checked. Each function here fails with a message where there is a location.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_INFERENCE_H
#define TANDEM_IR_OPS_INFERENCE_H

#include "ir/Dialect.h"

#include "llvm/ADT/Twine.h"

namespace tandem::infer {

using Loc = std::optional<mlir::Location>;
using Types = llvm::SmallVectorImpl<mlir::Type>;
using Sizes = llvm::ArrayRef<int64_t>;

/// Fails with `message` at `loc` where there is one.
mlir::LogicalResult fail(Loc loc, const llvm::Twine &message);

/// "[1, 2]".
std::string text(Sizes list);

/// The shape behind a tensor or ref; of anything else, an error.
mlir::FailureOr<Sizes> shapeOf(Loc loc, mlir::Type type);

/// `type` with another shape: a tensor stays a tensor, a ref a ref. Fails
/// unless the shape is one that tensors can have (kMaxElements).
mlir::LogicalResult pushShape(Loc loc, mlir::Type type, Sizes shape,
                              Types &types);

/// Fails unless `type` is a tensor of `rank`; `name` is the operand's.
mlir::LogicalResult expectRank(Loc loc, llvm::StringRef name, mlir::Type type,
                               int64_t rank);
/// Fails unless `list` has `size` entries, each at least `least`.
mlir::LogicalResult expectList(Loc loc, llvm::StringRef name, Sizes list,
                               size_t size, int64_t least);
/// Fails unless `dim` is a dimension of a tensor of `rank`.
mlir::LogicalResult expectDim(Loc loc, llvm::StringRef name, int64_t dim,
                              int64_t rank);
/// Fails unless the tensors have one element type.
mlir::LogicalResult expectSameElements(Loc loc, mlir::Type a, mlir::Type b);
/// Fails unless a product of tensors of `type` can have the precision: "f32"
/// and "tf32" are of f32.
mlir::LogicalResult expectPrecision(Loc loc,
                                    std::optional<llvm::StringRef> precision,
                                    mlir::Type type);
/// Fails unless the tensor `name` has the shape.
mlir::LogicalResult expectShape(Loc loc, llvm::StringRef name, mlir::Type type,
                                Sizes shape);

/// The type of a reduction: `operand` without `dims`, which must rise.
mlir::LogicalResult inferReduced(Loc loc, mlir::Type operand, Sizes dims,
                                 Types &types);

} // namespace tandem::infer

#endif
