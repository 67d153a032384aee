//===- SavedValues.h - what crosses from forward to backward --------------===//
//
// Two ways to choose. Neither saves a constant, nor an argument that keeps its
// value until the backward runs: the backward takes those itself. An argument
// that the forward overwrites is saved like any other value.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_SAVEDVALUES_H
#define TANDEM_PASSES_PARTITION_SAVEDVALUES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <string>

namespace tandem {

/// Values of a joint and why each is saved, in the order of the joint.
using SavedValues = llvm::MapVector<mlir::Value, std::string>;

/// What a partition must know of a joint function.
class JointView {
public:
  explicit JointView(mlir::func::FuncOp joint);

  /// True if `value` depends on a cotangent: it exists in the backward alone.
  bool isBackwardOnly(mlir::Value value) const {
    return backwardOnly.contains(value);
  }
  /// True if both programs have `value` without anybody saving it.
  bool isFree(mlir::Value value) const;
  /// True if `value` is a result with the role grad.
  bool isGradient(mlir::Value value) const { return gradients.contains(value); }

  mutable mlir::func::FuncOp joint;
  llvm::SmallVector<mlir::Value> gradientResults;
  /// Outputs and updates.
  llvm::SmallVector<mlir::Value> forwardResults;

private:
  llvm::DenseSet<mlir::Value> backwardOnly, overwritten, gradients;
};

/// Every value of a forward op that a backward op uses. Views are made again
/// where their source is there; where it is not, the smallest value of the
/// chain of views is saved.
SavedValues saveWhatBackwardUses(const JointView &view);

/// The values that cost the least to keep and to compute again: a smallest cut
/// between what only the forward can compute (contractions, windows, indexed
/// ops, arguments) and what the backward needs. Counted in bytes moved: a saved
/// value is written once and read once, an argument is read; a reduction that
/// is made again reads its operands again, what is made again for an op that
/// wants it in memory is written and read there, and every op that is made
/// again costs some bytes' time. Never more bytes saved than by
/// saveWhatBackwardUses().
SavedValues saveSmallestCut(const JointView &view);

} // namespace tandem

#endif
