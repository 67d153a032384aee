//===- Methods.h - the methods of kernels for a CPU -----------------------===//
//
// The tables, one a family of kernels. The page to read is Methods.cpp; how to
// add a row is docs/ADDING_A_METHOD.md.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_METHODS_H
#define TANDEM_PASSES_LOWER_CPU_METHODS_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/ScheduleRounds.h"

namespace tandem::lower::cpu {

class LoopEmitter;

using AnchorMethod = Method<AnchorKernel, Work, ScheduleRound>;
using AnchorMethods = MethodTable<AnchorMethod>;

/// The methods of kernels around `op`; null if there are none.
const AnchorMethods *methodsOf(mlir::OperationName op);

/// What methods see of a loop kernel.
struct LoopKernel {
  KernelOp kernel;
  const LoopNest &nest;
  LoopEmitter &emitter;
};
using LoopMethod = Method<LoopKernel, Work, ScheduleRound>;
using LoopMethods = MethodTable<LoopMethod>;

const LoopMethods &loopMethods();

// The rows whose methods have no header of their own.
Fit fitMatmul(AnchorKernel &kernel);
double secondsOfMatmul(AnchorKernel &kernel);
int64_t scratchOfMatmul(AnchorKernel &kernel);
ScheduleOverride cutMatmul(AnchorKernel &kernel);
mlir::FailureOr<Work> emitMatmul(AnchorKernel &kernel);
Fit fitWindows(AnchorKernel &kernel);
double secondsOfWindows(AnchorKernel &kernel);
int64_t scratchOfWindows(AnchorKernel &kernel);
ScheduleOverride cutWindows(AnchorKernel &kernel);
mlir::FailureOr<Work> emitWindows(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
