//===- MemoryBudget.h - plans that need less memory -----------------------===//
//
// A chain of partitions, from the least planned peak of a training step to the
// fastest step. What each needs is not estimated but planned, by the planner
// that plans the program. A budget chooses from the chain; the chain does not
// depend on the budget, so that a smaller one never has a larger peak.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_MEMORYBUDGET_H
#define TANDEM_PASSES_PARTITION_MEMORYBUDGET_H

#include "passes/partition/SavedValues.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace tandem {

/// One partition of a joint.
struct BudgetPoint {
  SavedValues saved;
  /// The planned peak of a step (passes/plan/StepMemory.h).
  int64_t peak = 0;
  /// The predicted time of a step.
  double seconds = 0;
  /// Of forward ops that the backward runs again.
  double flops = 0;
  /// What is saved beside outputs.
  int64_t savedBytes = 0;
};

/// Who chose, in the marks of a joint whose step is within a budget.
inline constexpr llvm::StringLiteral kByBudget = "memory-budget";

/// Returns partitions by rising peak: each next one has a higher peak, a
/// shorter step, and no more FLOPs that run again. The last is `fastest`, what
/// a partition without a budget saves, unless another one has a lower peak and
/// is no worse in time and FLOPs; the first has the least peak found among
/// those with no fewer FLOPs than `fastest`. Each is marked in `module`, and
/// planned in a copy of it: the marks of one of them stay. Fails where a
/// program cannot be planned.
mlir::FailureOr<std::vector<BudgetPoint>>
findBudgetChain(mlir::ModuleOp module, const JointView &view,
                const SavedValues &fastest);

} // namespace tandem

#endif
