//===- PlanPasses.h - the passes that plan one program --------------------===//
//
// The part of the phase plan that is about a program by itself: the partition
// rehearses memory with it, and regions that become programs when they are
// lowered are planned by it. The phase is passes/pipelines/Pipelines.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_PLANPASSES_H
#define TANDEM_PASSES_PLAN_PLANPASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace tandem {

/// Adds the passes of one program. `chooseMethods` says of each kernel how it
/// is computed; it is of passes/lower, with the tables that it asks. Null in a
/// rehearsal, which is for the memory of values.
void addPlanPasses(mlir::OpPassManager &program,
                   std::unique_ptr<mlir::Pass> chooseMethods);

/// Runs these passes on `func`.
mlir::LogicalResult planProgram(mlir::func::FuncOp func,
                                std::unique_ptr<mlir::Pass> chooseMethods);

/// The same as far as it decides where values lie.
mlir::LogicalResult rehearseProgram(mlir::func::FuncOp func);

} // namespace tandem

#endif
