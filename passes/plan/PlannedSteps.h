//===- PlannedSteps.h - the launches of a program, planned or lowered -----===//
//
// At plan a step is a `tandem.kernel`, at lower a `tandem.launch` or a copy to
// or from the host's memory. Both say where results lie, so both can be checked
// for the same. A view, parsed when needed.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_PLANNEDSTEPS_H
#define TANDEM_PASSES_PLAN_PLANNEDSTEPS_H

#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace tandem {

struct PlannedStep {
  mlir::Operation *op = nullptr;
  /// One for each result.
  llvm::SmallVector<BufferAttr, 2> places;
  llvm::SmallVector<InPlacePair, 2> inPlace;
  /// Of a library's call, in the arena; of no bytes where there is none.
  int64_t workspace = 0, workspaceBytes = 0;
  bool isToHost = false, isToDevice = false;
  /// Something else may run instead of it.
  bool hasChoices = false;
};

/// The steps of `func` in order. Fails, with every problem, at ops that are no
/// part of such a program, and at attributes that are none. `symbols` has the
/// functions of kernels, at lower.
mlir::FailureOr<std::vector<PlannedStep>>
plannedSteps(mlir::func::FuncOp func, mlir::SymbolTableCollection &symbols);

/// What a lowered kernel's function says of itself (`tandem.kernel`), which
/// every launch of it must agree with: `type`, the function type of its inputs
/// and results; `items`, what the launch calls `work`; `blocks`, its `grid`;
/// `in_place`, as on kernels. Fails, with errors, at a launch that does not.
mlir::LogicalResult checkLaunch(LaunchOp launch,
                                mlir::SymbolTableCollection &symbols);

/// The bytes of scratch that it says.
int64_t scratchOf(LaunchOp launch, mlir::SymbolTableCollection &symbols);

} // namespace tandem

#endif
