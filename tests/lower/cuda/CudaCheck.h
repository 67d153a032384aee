//===- CudaCheck.h - emulated CUDA kernels against the reference ----------===//
#ifndef TANDEM_TESTS_LOWER_CUDA_CUDACHECK_H
#define TANDEM_TESTS_LOWER_CUDA_CUDACHECK_H

#include "tests/lower/anchor/KernelCheck.h"
#include "tests/lower/cuda/CudaKernel.h"

namespace tandem::test {

/// Compiles the kernel of `text` for CUDA; runs it in the emulator with threads
/// and blocks in ascending, descending and random order; expects the same bytes
/// from each, no error of the emulator, and numbers as the reference's up to
/// rounding. Returns the PTX.
std::string checkCuda(const std::string &text, Tolerance tolerance,
                      int64_t high = 8, const CudaOptions &options = {});

} // namespace tandem::test

#endif
