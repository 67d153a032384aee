//===- EmulatorTest.h - a program that uses the emulated driver -----------===//
//
// The driver's functions are called by their names, as a program that is linked
// with libcuda.so.1 would call them. Each test begins with a clean report, one
// device and its context, and ends with no handles and no memory left.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_CUDA_EMULATOR_EMULATORTEST_H
#define TANDEM_TESTS_CUDA_EMULATOR_EMULATORTEST_H

#include "cuda/emulator/Control.h"
#include "cuda/emulator/DriverEntries.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tandem::test {

using namespace tandem::cuda::driver;

#define EXPECT_CU(call) EXPECT_EQ(tandem::test::nameOf(call), "CUDA_SUCCESS")
#define ASSERT_CU(call) ASSERT_EQ(tandem::test::nameOf(call), "CUDA_SUCCESS")
#define EXPECT_CU_ERROR(call, error)                                           \
  EXPECT_EQ(tandem::test::nameOf(call), "CUDA_ERROR_" #error)

/// Returns "CUDA_ERROR_INVALID_VALUE".
std::string nameOf(CUresult result);

/// Elements of the arrays of these tests, and their bytes.
inline constexpr size_t kElements = 1024, kBytes = kElements * sizeof(float);

class Emulator : public ::testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;

  /// Makes device memory, freed at the end.
  CUdeviceptr array(size_t bytes = kBytes);
  /// Makes pinned memory of kElements floats, freed at the end.
  float *pinned();
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
  CUevent event(unsigned flags = CU_EVENT_DEFAULT);
  /// Makes `to` wait for what `from` has been given.
  void order(CUstream from, CUstream to);
  /// Queues it.
  CUresult launch(CUdeviceptr to, CUdeviceptr from, CUstream stream);
  /// Fills an array and waits for that.
  void set(CUdeviceptr to, float value);
  /// Returns all elements of an array, which are to be the same.
  float get(CUdeviceptr from);

  /// Returns the texts of the errors found so far, and forgets them.
  std::vector<std::string> takeErrors();
  /// Returns the log's lines, and forgets them.
  std::vector<std::string> takeLog();
  /// Expects one error that contains all of the parts.
  void expectOneError(const std::vector<std::string> &parts);

  CUcontext context = nullptr;
  /// The kernel to[i] = from[i] + 1 on kElements floats.
  CUfunction increment = nullptr;

private:
  CUmodule module = nullptr;
  std::vector<CUdeviceptr> arrays;
  std::vector<float *> pins;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;
};

/// The same under each policy.
class EveryPolicy : public Emulator,
                    public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override;
};

#define TANDEM_EVERY_POLICY(suite)                                             \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      , suite,                                                                 \
      ::testing::Values("eager", "lazy", "others-first", "random:1",           \
                        "random:2", "random:3"),                               \
      [](const auto &info) {                                                   \
        std::string name = info.param;                                         \
        std::erase_if(name, [](char c) { return !std::isalnum(c); });          \
        return name;                                                           \
      })

} // namespace tandem::test

#endif
