//===- KernelCheck.h - compiled kernels against the reference -------------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_KERNELCHECK_H
#define TANDEM_TESTS_LOWER_ANCHOR_KERNELCHECK_H

#include "tests/support/JitKernel.h"

#include <gtest/gtest.h>

namespace tandem::test {

/// Whether the target that is tested has kernels of both gradients of
/// attention.
extern const bool kHasBothGrads;

/// What a check may assume of a kernel.
struct Tolerance {
  double terms = 1; ///< the length of the longest sum
  int vectorBits = 0;
  /// The rounding of the products' factors, where it is greater than that of
  /// the sums.
  double factors = 0;
  /// The largest value that is rounded to the element type on the way to a
  /// result, where one may be larger than the result.
  double between = 0;
  /// The code is what LLVM usually makes, whichever check this is.
  bool alwaysUsual = false;
};

/// The module with a function whose kernel has inputs %0, %1, ... of `types`
/// and the body `body`, which yields values of `results`.
std::string kernelModule(const std::vector<std::string> &types,
                         const std::vector<std::string> &results,
                         const std::string &body);

/// Random inputs: integers in [-2, high), floats in [-1, 1), booleans.
std::vector<reference::Array>
randomInputs(const std::vector<mlir::RankedTensorType> &types, int64_t high);
/// Expects the bytes of results to be the expected numbers, up to rounding.
void expectClose(const std::vector<std::vector<uint8_t>> &results,
                 const std::vector<reference::Array> &expected,
                 const std::vector<mlir::RankedTensorType> &types,
                 Tolerance tolerance);

/// Whether the process asks for the first time for this check.
bool isFirstCheck(const std::string &text, const Tolerance &tolerance,
                  int vectorBits, int64_t high);

/// Compiles the kernel of `text`, runs it on random inputs, and expects the
/// same bytes however the work is split or ordered, and numbers as the
/// reference's up to rounding. CpuCheck.cpp does it on this processor, whose
/// items are run at once, one by one, and three by three from the last on; the
/// same tests are linked with ../cuda/CudaCheck.cpp, which does it in the
/// kernel emulator. Where the process has done the same before, it returns at
/// once: for CUDA vectors have no width, and the host's is one of those that
/// tests go through. Of half of a processor's kernels LLVM makes what it
/// usually does, of the others the least: both are code that users get, and
/// what is tested is the lowering in front of it.
void checkKernel(const std::string &text, Tolerance tolerance,
                 int64_t high = 8);

} // namespace tandem::test

#endif
