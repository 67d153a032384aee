//===- ObjectCode.h - from LLVM functions to a shared object --------------===//
//
// Optimizes and translates the LLVM-dialect functions of a module and links
// them, in process, into one ELF shared object that needs nothing but libc and
// libm symbols of the process that loads it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_OBJECTCODE_H
#define TANDEM_COMPILER_EMIT_OBJECTCODE_H

#include "compiler/Target.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir {
class TimingScope;
}

namespace tandem {

/// Returns the shared object that defines `exported` (names of LLVM functions
/// of `kernels`) and whatever they use. The functions are compiled in chunks,
/// `threads` at a time, and timed under `timing`; the bytes do not depend on
/// `threads`.
Result<std::string> emitSharedObject(mlir::ModuleOp kernels,
                                     const std::vector<std::string> &exported,
                                     const CpuTarget &target, int threads,
                                     mlir::TimingScope *timing = nullptr);

} // namespace tandem

#endif
