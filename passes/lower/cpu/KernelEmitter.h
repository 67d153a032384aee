//===- KernelEmitter.h - the door between kernels and their emitters ------===//
//
// LowerToCpu makes a function around each distinct tandem.kernel and asks one
// of these functions for its body: emitLoops for kernels of loop ops alone,
// emitAnchor for those with one contraction, window or indexed op. An emitter
// writes the code of the items [begin, end) at the builder; it emits ops of
// arith, math, index, scf, vector, memref and llvm that the pipeline of
// passes/lower/cpu/ToLLVM.cpp lowers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_KERNELEMITTER_H
#define TANDEM_PASSES_LOWER_CPU_KERNELEMITTER_H

#include "ir/Ops.h"

namespace tandem::cpu {

/// What the body of a kernel function has to work with.
struct KernelBody {
  /// One memref per input and per result of the kernel: static shape,
  /// row-major, 64-byte aligned; booleans are i8. A result that overwrites an
  /// input is the input's memref; no two others overlap.
  llvm::SmallVector<mlir::Value> inputs, outputs;
  /// The items to run: `index` values with 0 <= begin <= end <= Work::items.
  mlir::Value begin, end;
  /// memref<?xi8> of at least Work::scratchBytes, 64-byte aligned, private to
  /// the calling thread.
  mlir::Value scratch;
};

/// How a kernel can be split.
struct Work {
  /// Independent items; the result must not depend on how they are split.
  int64_t items = 1;
  /// The least number of items that are worth a thread.
  int64_t grain = 1;
  int64_t scratchBytes = 0;
};

mlir::FailureOr<Work> emitLoops(KernelOp kernel, mlir::OpBuilder &b,
                                KernelBody &body);
mlir::FailureOr<Work> emitAnchor(KernelOp kernel, mlir::OpBuilder &b,
                                 KernelBody &body);

/// True if kernels can be made around `op`, a contraction, window or indexed
/// op.
bool hasCpuLowering(mlir::OperationName op);

/// The number of items, each costing about `flops` operations and `bytes` of
/// memory traffic, that keep a core busy for at least 20 microseconds.
int64_t grainFor(int64_t items, double flopsPerItem, double bytesPerItem);

} // namespace tandem::cpu

#endif
