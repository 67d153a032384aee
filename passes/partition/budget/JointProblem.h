//===- JointProblem.h - the problem that a joint function poses -----------===//
#ifndef TANDEM_PASSES_PARTITION_BUDGET_JOINTPROBLEM_H
#define TANDEM_PASSES_PARTITION_BUDGET_JOINTPROBLEM_H

#include "passes/partition/SavedValues.h"
#include "passes/partition/budget/Problem.h"

namespace tandem::budget {

/// The problem of a joint, and whose values are whose. A view that has all
/// elements of its operand is no value of the problem: it stands for the
/// operand.
class JointProblem {
public:
  /// `view` must outlive the problem.
  explicit JointProblem(const JointView &view);

  const Problem &problem() const { return graph; }
  /// What a partition saves, as a set of the problem's values.
  Set setOf(const SavedValues &saved) const;
  /// The reverse, with the reason for each, in the order of the joint.
  SavedValues savedOf(const Set &set) const;

private:
  unsigned number(mlir::Value value);
  void addOp(mlir::Operation *op, bool isForward);
  void findLevels();
  void findKinds();
  void pinValues();
  std::string reasonFor(mlir::Value value) const;
  bool livesInKernel(mlir::Value value, bool inBackward) const;

  const JointView &view;
  Problem graph;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  std::vector<mlir::Value> owners;
  /// The most reductions and ops of whole kernels on a path to a value.
  llvm::DenseMap<mlir::Value, unsigned> level;
  llvm::DenseMap<mlir::Operation *, uint64_t> kinds;
};

} // namespace tandem::budget

#endif
