//===- CudaCheck.cpp - emulated CUDA kernels against the reference --------===//
#include "tests/lower/cuda/CudaCheck.h"

const bool tandem::test::kHasBothGrads = false;

using namespace tandem;
using namespace tandem::test;

std::string test::checkCuda(const std::string &text, Tolerance tolerance,
                            int64_t high, const CudaOptions &options) {
  SCOPED_TRACE(text);
  CudaKernel kernel(text, options);
  EXPECT_TRUE(kernel.ok()) << kernel.error;
  if (!kernel.ok())
    return "";
  auto inputs = randomInputs(kernel.inputTypes, high);
  auto expected = kernel.expected(inputs);
  EXPECT_EQ(expected.size(), kernel.outputTypes.size()) << kernel.error;
  auto first = kernel.outputs(inputs, emulator::Order::Ascending);
  EXPECT_EQ(first, kernel.outputs(inputs, emulator::Order::Descending))
      << "in descending order";
  EXPECT_EQ(first, kernel.outputs(inputs, emulator::Order::Random))
      << "in random order";
  EXPECT_EQ(kernel.error, "");
  expectClose(first, expected, kernel.outputTypes, tolerance);
  return kernel.ptx();
}

void test::checkKernel(const std::string &text, Tolerance tolerance,
                       int64_t high) {
  if (isFirstCheck(text, tolerance, 0, high))
    checkCuda(text, tolerance, high);
}
