//===- KernelEmitter.h - the door between kernels and CUDA's emitters -----===//
//
// EmitCudaKernels makes a gpu.func of each distinct tandem.kernel and asks one
// of these functions for its body: emitLoops for kernels of loop ops alone,
// emitAnchor for those with one contraction, window or indexed op. An emitter
// writes what each thread does, in ops of arith, math, index, scf, vector,
// memref, gpu, nvgpu and nvvm that the passes behind it lower, and says
// how many threads there are.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_KERNELEMITTER_H
#define TANDEM_PASSES_LOWER_CUDA_KERNELEMITTER_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/ThreadCode.h"

#include <array>
#include <optional>

namespace tandem::lower::cuda {

using namespace lower;

/// The threads of a launch.
struct LaunchShape {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  /// All zeros before and after the kernel.
  int64_t scratchBytes = 0;
  /// For how many blocks at a time the registers of a multiprocessor must do.
  /// With none ptxas decides, and may spill registers to fit one block more.
  /// Kernels of warpgroups, which change the numbers of their registers, say
  /// one: each thread begins with an equal share of all.
  std::optional<int> blocksAtOnce;

  /// As many blocks of `threads` as `items` need, one thread an item.
  static LaunchShape over(int64_t items, int64_t threads = 256);
};

mlir::FailureOr<LaunchShape> emitLoops(KernelOp kernel, ThreadCode &code,
                                       KernelBody &body);
mlir::FailureOr<LaunchShape> emitAnchor(KernelOp kernel, ThreadCode &code,
                                        KernelBody &body);

/// The row that these would take, with an empty name where the result has no
/// elements. What code is written is of no use.
mlir::FailureOr<ChosenMethod> chooseLoops(KernelOp kernel, ThreadCode &code,
                                          KernelBody &body,
                                          const MethodQuestion &question);
mlir::FailureOr<ChosenMethod> chooseAnchor(KernelOp kernel, ThreadCode &code,
                                           KernelBody &body,
                                           const MethodQuestion &question);

/// The emitters of families that have one (Methods.h has all).
mlir::FailureOr<LaunchShape> emitWindow(AnchorKernel &kernel, ThreadCode &code);
mlir::FailureOr<LaunchShape> emitIndexed(AnchorKernel &kernel,
                                         ThreadCode &code);
mlir::FailureOr<LaunchShape> emitLines(AnchorKernel &kernel, ThreadCode &code);

/// True if kernels can be made around `op`, a contraction, window or indexed
/// op.
bool hasCudaLowering(mlir::OperationName op);

} // namespace tandem::lower::cuda

#endif
