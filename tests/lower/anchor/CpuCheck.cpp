//===- CpuCheck.cpp - kernels on this processor against the reference -----===//
#include "tests/lower/anchor/KernelCheck.h"

#include <bit>

const bool tandem::test::kHasBothGrads = true;

using namespace tandem;
using namespace tandem::test;

void test::checkKernel(const std::string &text, Tolerance tolerance,
                       int64_t high) {
  int bits = tolerance.vectorBits ? tolerance.vectorBits : hostVectorBits();
  if (!isFirstCheck(text, tolerance, bits, high))
    return;
  // Half of them, with no period: checks of one kind come in twos and threes.
  static unsigned checks = 0;
  bool isLeast = std::popcount(checks++) % 2 && !tolerance.alwaysUsual;
  SCOPED_TRACE(text);
  SCOPED_TRACE(isLeast ? "--effort=0" : "--effort=2");
  JitKernel kernel(text, bits, isLeast ? Optimized::Least : Optimized::Usual);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto inputs = randomInputs(kernel.inputTypes, high);
  auto expected = kernel.expected(inputs);
  ASSERT_EQ(expected.size(), kernel.outputTypes.size()) << kernel.error;
  auto whole = kernel.outputs(inputs, kernel.work);
  EXPECT_EQ(whole, kernel.outputs(inputs, 1)) << "split one by one";
  EXPECT_EQ(whole, kernel.outputs(inputs, 3, true)) << "split backwards";
  EXPECT_EQ(kernel.error, "");
  expectClose(whole, expected, kernel.outputTypes, tolerance);
}
