//===- KernelCheck.h - compiled kernels against the reference -------------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_KERNELCHECK_H
#define TANDEM_TESTS_LOWER_ANCHOR_KERNELCHECK_H

#include "tests/support/JitKernel.h"

#include <gtest/gtest.h>

namespace tandem::test {

/// What a check may assume of a kernel.
struct Tolerance {
  double terms = 1; ///< the length of the longest sum
  int vectorBits = 0;
};

/// The module with a function whose kernel has inputs %0, %1, ... of `types`
/// and the body `body`, which yields values of `results`.
std::string kernelModule(const std::vector<std::string> &types,
                         const std::vector<std::string> &results,
                         const std::string &body);

/// Compiles the kernel of `text`; runs it on random inputs (integers in [-2,
/// high), floats in [-1, 1)) over its items at once, one by one, and three by
/// three from the last on; expects the same bytes from each, and numbers as the
/// reference's up to rounding.
void checkKernel(const std::string &text, Tolerance tolerance,
                 int64_t high = 8);

} // namespace tandem::test

#endif
