//===- DeviceChecks.h - what kernels for a GPU cannot have ----------------===//
//
// The backend ends the process at what it cannot translate, or leaves it for
// ptxas to refuse; so it is found before.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_DEVICECHECKS_H
#define TANDEM_COMPILER_EMIT_DEVICECHECKS_H

#include "compiler/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/Module.h"

#include <string>
#include <vector>

namespace tandem {

/// Checks the names, blocks and shared memory of the kernels `exported`, and
/// that all that `kernels` call is there. Those with a key may have their code
/// elsewhere. Emits a diagnostic for each problem.
Status checkKernels(mlir::gpu::GPUModuleOp kernels,
                    const std::vector<std::string> &exported,
                    const CudaTarget &target);

/// Checks the kernels of an optimized module: intrinsics without instructions,
/// shared memory. The message lists everything that is wrong.
Status checkOptimized(const llvm::Module &module);

} // namespace tandem

#endif
