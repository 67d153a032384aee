//===- KernelEmitter.h - the door between kernels and their emitters ------===//
//
// EmitCpuKernels makes a function of each distinct tandem.kernel and asks one
// of these functions for its body: emitLoops for kernels of loop ops alone,
// emitAnchor for those with one contraction, window or indexed op. An emitter
// writes the code of the items [begin, end) at the builder; it emits ops of
// arith, math, index, scf, vector, memref and llvm that the passes
// behind it lower (passes/pipelines/Pipelines.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_KERNELEMITTER_H
#define TANDEM_PASSES_LOWER_CPU_KERNELEMITTER_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Method.h"

namespace tandem::lower::cpu {

using namespace lower;

mlir::FailureOr<Work> emitLoops(KernelOp kernel, mlir::OpBuilder &b,
                                KernelBody &body);
mlir::FailureOr<Work> emitAnchor(KernelOp kernel, mlir::OpBuilder &b,
                                 KernelBody &body);
/// The row that these would take. No code of the kernel is written at the
/// builder, but for where operands lie.
mlir::FailureOr<ChosenMethod> chooseLoops(KernelOp kernel, mlir::OpBuilder &b,
                                          KernelBody &body,
                                          const MethodQuestion &question);
mlir::FailureOr<ChosenMethod> chooseAnchor(KernelOp kernel, mlir::OpBuilder &b,
                                           KernelBody &body,
                                           const MethodQuestion &question);

/// The emitters of families that have one (Methods.h has all).
mlir::FailureOr<Work> emitWindow(AnchorKernel &kernel);
mlir::FailureOr<Work> emitIndexed(AnchorKernel &kernel);
mlir::FailureOr<Work> emitLines(AnchorKernel &kernel);
mlir::FailureOr<Work> emitAttention(AnchorKernel &kernel);
/// The scratch that the code of these takes.
int64_t scratchOfWindow(AnchorKernel &kernel);
int64_t scratchOfIndexed(AnchorKernel &kernel);
int64_t scratchOfLines(AnchorKernel &kernel);
int64_t scratchOfAttention(AnchorKernel &kernel);
/// How they cut a kernel.
ScheduleOverride cutIndexed(AnchorKernel &kernel);
ScheduleOverride cutAttention(AnchorKernel &kernel);

/// True if kernels can be made around `op`, a contraction, window or indexed
/// op.
bool hasCpuLowering(mlir::OperationName op);

/// The number of items, each costing about `flops` operations and `bytes` of
/// memory traffic, that a thread takes at a time: all of them if they are not
/// worth a second thread.
int64_t grainFor(int64_t items, double flopsPerItem, double bytesPerItem);

} // namespace tandem::lower::cpu

#endif
