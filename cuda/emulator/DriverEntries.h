//===- DriverEntries.h - the driver's functions by their names ------------===//
//
// For who is linked with the emulator, and calls it as programs call
// libcuda.so.1; and for the emulator, which defines them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_DRIVERENTRIES_H
#define TANDEM_CUDA_EMULATOR_DRIVERENTRIES_H

#include "cuda/DriverApi.h"

namespace tandem::cuda::driver {

extern "C" {
#define TANDEM_DRIVER_FUNCTION(member, symbol, parameters)                     \
  __attribute__((visibility("default"))) CUresult symbol parameters;
#include "cuda/DriverFunctions.def"
#undef TANDEM_DRIVER_FUNCTION
}

} // namespace tandem::cuda::driver

#endif
