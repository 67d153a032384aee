//===- NcclCalls.h - the functions of NCCL that the emulator has ----------===//
#ifndef TANDEM_TESTS_CUDA_EMULATOR_NCCLCALLS_H
#define TANDEM_TESTS_CUDA_EMULATOR_NCCLCALLS_H

#include "cuda/NcclApi.h"

namespace tandem::cuda::nccl {
extern "C" {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  result symbol parameters;
#include "cuda/NcclFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
}
} // namespace tandem::cuda::nccl

#endif
