//===- BuiltinTwins.h - the device layer's own kernels, for the host ------===//
#ifndef TANDEM_CUDA_EMULATOR_BUILTINTWINS_H
#define TANDEM_CUDA_EMULATOR_BUILTINTWINS_H

#include "cuda/emulator/Modules.h"

namespace tandem::emulator {

/// Returns the twins of the kernels of cuda/BuiltinKernels.h, by name.
std::map<std::string, Twin> builtinTwins();

} // namespace tandem::emulator

#endif
