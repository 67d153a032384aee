//===- KernelFunction.h - the function around a kernel's code -------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_KERNELFUNCTION_H
#define TANDEM_PASSES_LOWER_CUDA_KERNELFUNCTION_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/KernelEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tandem::lower::cuda {

/// A kernel's function, and how it is launched.
struct KernelFunction {
  std::string name;
  LaunchShape shape;
  int64_t sharedBytes = 0, buffers = 0;
  std::vector<TensorMap> tensorMaps;
};

/// Writes the function `made.name` at the end of `target`, and says the rest of
/// `made`. Fails with a diagnostic. `log` gets the methods that there were to
/// choose from.
mlir::LogicalResult emitKernelFunction(mlir::gpu::GPUModuleOp target,
                                       KernelOp kernel, KernelFunction &made,
                                       MethodLog *log = nullptr);

} // namespace tandem::lower::cuda

#endif
