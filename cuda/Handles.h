//===- Handles.h - the runtime's handles as the driver's ------------------===//
#ifndef TANDEM_CUDA_HANDLES_H
#define TANDEM_CUDA_HANDLES_H

#include "cuda/DriverApi.h"
#include "runtime/device/Backend.h"

namespace tandem::cuda {

inline driver::CUstream cu(runtime::Stream stream) {
  return static_cast<driver::CUstream>(stream);
}

inline driver::CUdeviceptr address(const void *data) {
  return reinterpret_cast<driver::CUdeviceptr>(data);
}

} // namespace tandem::cuda

#endif
