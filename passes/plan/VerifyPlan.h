//===- VerifyPlan.h - a planned or lowered module that was read back ------===//
#ifndef TANDEM_PASSES_PLAN_VERIFYPLAN_H
#define TANDEM_PASSES_PLAN_VERIFYPLAN_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Checks a module at plan, which may have been edited: its programs against
/// each other (checkPrograms), the plan of each (checkPlan), and what it says
/// of a step's memory. Emits every problem.
mlir::LogicalResult verifyPlanned(mlir::ModuleOp module);

/// The same of a module at lower, and its launches against their kernels.
mlir::LogicalResult verifyLowered(mlir::ModuleOp module);

} // namespace tandem

#endif
