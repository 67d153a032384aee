//===- Emulation.h - kernels for the kernel emulator ----------------------===//
//
// Turns the optimized NVVM modules that PTX is made of into an emulation image
// (runtime/artifact/Emulation.h): code for the host in which every intrinsic
// and inline assembly is a call of the emulator and every access to memory is
// checked. What the emulator cannot do is an Unsupported status that names all
// of it, and where it is.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_EMULATION_H
#define TANDEM_COMPILER_EMIT_EMULATION_H

#include "compiler/emit/DeviceCode.h"

namespace tandem {

/// Returns the image of the kernels in `modules`, which are for NVPTX. They are
/// compiled `threads` at a time (0: one for each processor); the bytes
/// do not depend on it.
Result<std::string> emitEmulation(const std::vector<DeviceModule> &modules,
                                  int threads);

} // namespace tandem

#endif
