//===- Cost.h - what saving and repeating take ----------------------------===//
//
// Seconds, predicted from a target's rates (passes/target/Rates.h): what it
// takes to save a value for the backward, and what to make it there again
// instead. An op that fuses into a kernel of the backward costs its arithmetic
// alone; what a kernel reads or writes only for its sake is moved to or from
// memory besides.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_COST_H
#define TANDEM_PASSES_PARTITION_COST_H

#include "passes/partition/SavedValues.h"
#include "passes/target/Rates.h"

namespace tandem {

/// What saving and repeating the values of a joint take.
class JointCosts {
public:
  /// `view` must outlive the costs.
  explicit JointCosts(const JointView &view);

  /// Saving `value`: it is read in the backward, it lies in memory meanwhile,
  /// which counts as moving it once more, and it is written, unless the
  /// forward has it in memory in any case. What an output or an argument holds
  /// is only read. The first call plans the kernels of a copy of the forward,
  /// which it erases.
  double saving(mlir::Value value) const;

  /// Making `value` again in the backward, where its operands are at hand. For
  /// an op that no kernel takes in (contraction, window, indexed), all of it;
  /// else its arithmetic; writing the result where an op reads it from memory;
  /// and an operand that crosses, moved three times: the backward of a residual
  /// connection reaches the layers that it skips first, and its own beginning
  /// later. The operand is written there, kept, and read.
  /// 0 for what the backward alone makes.
  double repeating(mlir::OpResult value) const;

  /// True if making the op again is a whole kernel's work, which a partition
  /// without a memory budget never repeats.
  static bool isWhole(mlir::Operation *op);

  /// True if the op, made again among other ops, has the same bits. A sum or
  /// product of floating-point elements has not: the kernel that it is in
  /// decides the order.
  static bool isExact(mlir::Operation *op);

  /// True if `value` is made of nothing that lies in memory, or of what is a
  /// small part of it: random bits, masks of positions, repeated rows.
  bool isLight(mlir::Value value) const { return light.contains(value); }

  const Rates rates;

private:
  void visit(mlir::Operation &op);
  void findInMemory() const;
  bool isReadFromMemory(mlir::Value value) const;
  llvm::SmallVector<mlir::Value> joinedBy(mlir::Operation *op) const;
  void findStages();
  llvm::SmallVector<mlir::Value> crossing(mlir::Operation *op) const;

  const JointView &view;
  llvm::DenseSet<mlir::Value> light;
  /// What the forward has in memory whether or not it is saved, once somebody
  /// has asked.
  mutable std::optional<llvm::DenseSet<mlir::Value>> inMemory;
  /// The most reductions and whole ops on a path to a value.
  llvm::DenseMap<mlir::Value, unsigned> level, stage;
  /// Ops that join values of different levels, and the earlier ones of these.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> joins;
};

} // namespace tandem

#endif
