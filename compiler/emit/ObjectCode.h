//===- ObjectCode.h - from LLVM functions to a shared object --------------===//
//
// Optimizes and translates the LLVM-dialect functions of a module, kernel by
// kernel, and links them, in process, into one ELF shared object that needs
// nothing but libc and libm symbols of the process that loads it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_OBJECTCODE_H
#define TANDEM_COMPILER_EMIT_OBJECTCODE_H

#include "compiler/Target.h"
#include "compiler/emit/KernelCache.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir {
class TimingScope;
}

namespace tandem {

/// How code is made, and where time goes. None of it changes bytes but
/// `effort`.
struct ObjectOptions {
  int threads = 0;                     ///< 0: one for each processor
  int effort = 2;                      ///< as CompileOptions has it
  KernelCache *cache = nullptr;        ///< of what has a key (KernelKeys.h)
  mlir::TimingScope *timing = nullptr; ///< gets the times of steps
};

/// Returns the shared object that defines `exported` (names of LLVM functions
/// of `kernels` with `tandem.kernel`) and whatever they use.
Result<std::string> emitSharedObject(mlir::ModuleOp kernels,
                                     const std::vector<std::string> &exported,
                                     const CpuTarget &target,
                                     const ObjectOptions &options);

/// Whether a kernel of `kernels` multiplies matrix tiles.
bool usesTiles(mlir::ModuleOp kernels, KernelCache *cache);

} // namespace tandem

#endif
