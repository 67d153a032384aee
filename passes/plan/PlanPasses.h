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

namespace tandem {

/// Adds the passes that make kernels of the ops of one program, in their order.
void addKernelPasses(mlir::OpPassManager &program);
/// Adds those that then say where values lie. In between it is said how each
/// kernel is computed, since scratch is memory; a rehearsal leaves that out.
void addMemoryPasses(mlir::OpPassManager &program);

/// Runs these passes on `func`, and `chooseMethods` in between, which knows the
/// tables of passes/lower.
mlir::LogicalResult planProgram(
    mlir::func::FuncOp func,
    llvm::function_ref<mlir::LogicalResult(mlir::func::FuncOp)> chooseMethods);

/// The same as far as it decides where values lie.
mlir::LogicalResult rehearseProgram(mlir::func::FuncOp func);

} // namespace tandem

#endif
