//===- DeviceCode.h - from kernels to PTX ---------------------------------===//
//
// Optimizes and translates the kernels of `gpu.module @cuda` (LLVM functions
// with `nvvm.kernel`; docs/ARCHITECTURE.md, section 3) in process. Nothing of a
// CUDA toolkit is used, libdevice neither: the text is the same everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_DEVICECODE_H
#define TANDEM_COMPILER_EMIT_DEVICECODE_H

#include "compiler/Target.h"
#include "compiler/emit/KernelCache.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>
#include <vector>

namespace mlir {
class TimingScope;
}

namespace tandem {

/// An optimized module that PTX was made of.
struct DeviceModule {
  std::string bitcode;
  std::string kernel; ///< what `deviceSymbol` in it is called
};

struct KernelCode {
  std::string ptx; ///< one text
  std::vector<DeviceModule> modules;
};

/// Returns the code of the functions `exported`. They are compiled one by one,
/// `threads` at a time, and timed under `timing`; the result does not depend on
/// `threads`, nor on `cache` (may be null), which has that of functions with a
/// key (KernelKeys.h), and gets it. What a GPU cannot do is an Unsupported
/// status, and a diagnostic at the op's place.
Result<KernelCode> emitDeviceCode(mlir::gpu::GPUModuleOp kernels,
                                  const std::vector<std::string> &exported,
                                  const CudaTarget &target, bool keepBitcode,
                                  int threads,
                                  mlir::TimingScope *timing = nullptr,
                                  KernelCache *cache = nullptr);

} // namespace tandem

#endif
