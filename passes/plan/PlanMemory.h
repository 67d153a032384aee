//===- PlanMemory.h - where every value of a program lives ----------------===//
//
// Works on a function of kernels. Lifetimes are counted in
// kernels. What a program returns lives in the result's own storage, an update
// in the argument's where nobody needs the old value any more; everything else
// lives in the arena, from the kernel that makes it to the last that reads it,
// or, where a copy brought it to the host, in the program's memory there.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_PLANMEMORY_H
#define TANDEM_PASSES_PLAN_PLANMEMORY_H

#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Offsets in the arena and among the constants are multiples of this.
inline constexpr int64_t kBufferAlignment = 64;

/// The bytes that the function would need beside its arguments and results if
/// its kernels ran in this order: the arena's, and those of updates that are
/// not made in place.
int64_t plannedBytes(mlir::func::FuncOp func, llvm::ArrayRef<KernelOp> kernels,
                     InPlacePairs &pairs);

/// The bytes of the arena that would be in use while each of the kernels runs.
std::vector<int64_t> plannedBytesInUse(mlir::func::FuncOp func,
                                       llvm::ArrayRef<KernelOp> kernels,
                                       InPlacePairs &pairs);

/// Checks a planned or lowered function: results that live at once have places
/// of their own, a result that overwrites an input is computed where that dies,
/// what is returned lies where it is expected, the sizes of the plan are what
/// the places come to. Derives lifetimes anew from the IR; emits every problem.
/// `pairs`: of planned kernels, what can overwrite what; null for lowered ones.
mlir::LogicalResult checkPlan(mlir::func::FuncOp func, InPlacePairs *pairs);

} // namespace tandem

#endif
