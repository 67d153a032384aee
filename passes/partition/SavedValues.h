//===- SavedValues.h - what crosses from forward to backward --------------===//
//
// Two ways to choose. Neither saves a constant, nor an argument that keeps its
// value until the backward has run: the backward takes those itself. An
// argument that either pass overwrites is saved like any other value. Both obey
// the pins of the tags.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_SAVEDVALUES_H
#define TANDEM_PASSES_PARTITION_SAVEDVALUES_H

#include "passes/partition/Tags.h"

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace tandem {

/// Values of a joint and why each is saved, in the order of the joint.
using SavedValues = llvm::MapVector<mlir::Value, std::string>;

/// What a partition must know of a joint function.
class JointView {
public:
  /// `lost`: names of more arguments that do not keep their value until the
  /// backward runs.
  explicit JointView(mlir::func::FuncOp joint,
                     const llvm::StringSet<> &lost = {});

  /// True if `value` depends on a cotangent, or on what the backward finds: it
  /// exists in the backward alone.
  bool isBackwardOnly(mlir::Value value) const {
    return backwardOnly.contains(value);
  }
  /// True if both programs have `value` without anybody saving it.
  bool isFree(mlir::Value value) const;
  /// True for an argument that does not keep its value until the backward has
  /// run.
  bool isLost(mlir::Value value) const { return lost.contains(value); }
  /// True if the backward gives `value`.
  bool isGiven(mlir::Value value) const { return given.contains(value); }

  /// The output that the forward gives `value` as, whose storage a saved value
  /// can share; null if there is none.
  mlir::StringAttr outputOf(mlir::Value value) const {
    return outputs.lookup(value);
  }

  /// True if `value`, where it is saved, lies in the host's memory.
  bool isOnHost(mlir::Value value) const {
    return pins.isOffloaded(value) && !outputOf(value);
  }

  mutable mlir::func::FuncOp joint;
  /// Gradients, and what the backward writes.
  llvm::SmallVector<mlir::Value> backwardResults;
  /// Outputs and updates, but for outputs that are views of something else.
  llvm::SmallVector<mlir::Value> forwardResults;
  /// What the tags decide.
  Pins pins;

private:
  llvm::DenseSet<mlir::Value> backwardOnly, lost, given;
  llvm::DenseMap<mlir::Value, mlir::StringAttr> outputs;
};

/// True if the result with this role is an output that is a view of an argument
/// or of another output, which the program does not make.
bool isAliasOutput(RoleAttr role);

/// Every value of a forward op that a backward op uses. Views are made again
/// where their source is there; where it is not, the smallest value of the
/// chain of views is saved.
SavedValues saveWhatBackwardUses(const JointView &view);

/// The values that cost the least to keep and to compute again: a smallest cut
/// between what only the forward can compute (contractions, windows, indexed
/// ops, arguments) and what the backward needs. Counted in bytes moved: a saved
/// value is written once and read once, an argument or output is read; a
/// reduction that is made again reads its operands again, what is made again
/// for an op that wants it in memory is written and read there, and every op
/// that is made again costs some bytes' time. Never more bytes saved than by
/// saveWhatBackwardUses().
SavedValues saveSmallestCut(const JointView &view);

/// Checks that `kind` is a way to choose what is saved: "default", what the
/// backward uses, or "min-cut", the smallest cut. The error is the module's.
mlir::LogicalResult checkPartitionKind(mlir::ModuleOp module,
                                       llvm::StringRef kind);

} // namespace tandem

#endif
