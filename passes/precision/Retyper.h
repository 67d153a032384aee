//===- Retyper.h - ops in other types than they were written in -----------===//
//
// A value keeps its type: what is computed in another one is cast back behind
// it, and who wants it in that other type again gets it from before the cast.
// What nobody wants in its own type is a cast without a user.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PRECISION_RETYPER_H
#define TANDEM_PASSES_PRECISION_RETYPER_H

#include "ir/Ops.h"

namespace tandem {

/// The element type of a tensor; null of anything else.
mlir::Type elementOf(mlir::Value value);

/// For one block, whose ops are asked for in their order.
class Retyper {
public:
  /// What `value` is cast from, if it was computed in `type`; else null.
  mlir::Value computedIn(mlir::Value value, mlir::Type type) const;
  /// Takes what `op` casts for the value itself: that is rounded no more.
  void skip(CastOp op);

  /// Computes `op`, which has no effect and no region, in `type`: with casts of
  /// its operands of f32, bf16 and f16, and of its results back to their types.
  /// Erases `op`, and returns what takes its place; `op` itself where nothing
  /// was to do. Fails, with an error, if there is no such op.
  mlir::FailureOr<mlir::Operation *> compute(mlir::Operation *op,
                                             mlir::Type type);

private:
  /// `value` in `type`, for `user`, an op of the block.
  mlir::Value in(mlir::Value value, mlir::Type type, mlir::Operation *user);

  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> versions;
};

} // namespace tandem

#endif
