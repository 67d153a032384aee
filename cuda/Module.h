//===- Module.h - code, loaded by the driver ------------------------------===//
//
// Loads PTX, cubins and images of the emulator. What the driver's compiler says
// about PTX that it refuses is in the error.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_MODULE_H
#define TANDEM_CUDA_MODULE_H

#include "cuda/Context.h"

namespace tandem::cuda {

/// Loads `image`: zero-terminated PTX, or an ELF file. `called` is for
/// messages. Needs a Scope around it.
Result<driver::CUmodule> loadModule(const Context &context, const void *image,
                                    const std::string &called);

} // namespace tandem::cuda

#endif
