//===- PlanProgram.h - one program from ops to planned kernels ------------===//
#ifndef TANDEM_PASSES_PLAN_PLANPROGRAM_H
#define TANDEM_PASSES_PLAN_PLANPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Forms the kernels of `func`, gives each of their results a place, and checks
/// the plan. Constants have no places yet. The module's other programs may be
/// planned or not.
mlir::LogicalResult planProgram(mlir::func::FuncOp func);

} // namespace tandem

#endif
