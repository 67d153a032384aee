//===- ToNVVM.h - from the code of emitters to the NVVM dialect -----------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_TONVVM_H
#define TANDEM_PASSES_LOWER_CUDA_TONVVM_H

#include "mlir/Pass/PassManager.h"

namespace tandem::lower::cuda {

/// Adds the passes that lower a module with one gpu.module of kernels to the
/// LLVM and NVVM dialects. Kernels' memrefs (static shapes only) become bare
/// pointers; functions of f32 become arithmetic, so that no library is linked.
void buildToNVVM(mlir::OpPassManager &pm);

} // namespace tandem::lower::cuda

#endif
