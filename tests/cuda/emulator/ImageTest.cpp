//===- ImageTest.cpp - kernels of emulation images on streams -------------===//
//
// The kernel emulator's accesses reach the driver emulator's checks.
//
//===----------------------------------------------------------------------===//
#include "EmulatorTest.h"

#include <fstream>

using namespace tandem::test;

namespace {
class ImageKernels : public EveryPolicy {
protected:
  void SetUp() override {
    EveryPolicy::SetUp();
    std::ifstream file(TANDEM_TEST_IMAGE, std::ios::binary);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    ASSERT_FALSE(image.empty());
    ASSERT_CU(cuModuleLoadData(&module, image.data()));
    ASSERT_CU(cuModuleGetFunction(&increment, module, "image_increment"));
  }
  void TearDown() override {
    EXPECT_CU(cuModuleUnload(module));
    EveryPolicy::TearDown();
  }
  CUmodule module = nullptr;
};
TANDEM_EVERY_POLICY(ImageKernels);
} // namespace

TEST_P(ImageKernels, Run) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  order(a, b);
  EXPECT_CU(launch(z, y, b));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(get(z), 3.f);
  CUfunction none = nullptr;
  EXPECT_CU_ERROR(cuModuleGetFunction(&none, module, "tandem_emulation"),
                  NOT_FOUND);
}

TEST_P(ImageKernels, MissingWait) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, y, b));
  expectOneError({"kernel 'image_increment'", "memory 2 at byte 0", "s1", "s2",
                  "nothing orders the two"});
}

TEST_P(ImageKernels, ExactBytes) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(2 * kBytes);
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuMemsetD8Async(y + kBytes, 0, kBytes, b));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
  EXPECT_CU(cuMemsetD8Async(y + kBytes - 1, 0, 1, b));
  expectOneError({"memset, 1 bytes", "at byte 4095"});
}

TEST_P(ImageKernels, OutOfBounds) {
  CUdeviceptr x = array(), little = array(kBytes - 4);
  set(x, 1);
  EXPECT_CU(launch(little, x, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  const std::vector<std::string> errors = takeErrors();
  ASSERT_FALSE(errors.empty());
  EXPECT_NE(errors.back().find("store to to"), std::string::npos)
      << errors.back();
}

TEST_P(ImageKernels, UseAfterFree) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = 0;
  set(x, 1);
  EXPECT_CU(cuMemAllocAsync(&y, kBytes, a));
  EXPECT_CU(cuMemFreeAsync(y, a));
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuStreamSynchronize(a));
  const std::vector<std::string> errors = takeErrors();
  ASSERT_FALSE(errors.empty());
  for (const char *part :
       {"uses freed memory 2 at byte", "freed by free of memory 2"})
    EXPECT_NE(errors[0].find(part), std::string::npos) << errors[0];
}
