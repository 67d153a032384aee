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
/// `made`. Fails with a diagnostic.
mlir::LogicalResult emitKernelFunction(mlir::gpu::GPUModuleOp target,
                                       KernelOp kernel, KernelFunction &made);

/// True but for copies, whose code no table chooses.
bool hasMethods(KernelOp kernel);

/// The row of a kernel that has methods and is a trial's (common/Trial.h): its
/// module gets a function in which it is asked where operands lie. Without a
/// name where the result has no elements. Fails with a diagnostic. `log` may be
/// null.
mlir::FailureOr<ChosenMethod> chooseAlone(KernelOp kernel,
                                          const MethodQuestion &question);

/// The dialects that both write.
void loadDialectsOfCode(mlir::MLIRContext *context);

} // namespace tandem::lower::cuda

#endif
