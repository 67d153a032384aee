//===- FailureTest.cpp - failures on demand -------------------------------===//
#include "EmulatorTest.h"

using namespace tandem::test;

namespace {
class Failure : public EveryPolicy {};
TANDEM_EVERY_POLICY(Failure);
} // namespace

TEST_P(Failure, OutOfMemory) {
  ASSERT_EQ(tandemEmulatorFail("alloc:2"), 0);
  CUdeviceptr x = array(), y = 0;
  EXPECT_CU_ERROR(cuMemAlloc_v2(&y, 64), OUT_OF_MEMORY);
  EXPECT_CU(cuMemAlloc_v2(&y, 64));
  EXPECT_CU(cuMemFree_v2(y));
  ASSERT_EQ(tandemEmulatorFail("alloc:1"), 0);
  EXPECT_CU_ERROR(cuMemAllocAsync(&y, 64, nullptr), OUT_OF_MEMORY);
  set(x, 1);
  EXPECT_EQ(get(x), 1.f);
}

// Refused at the call: nothing else is broken.
TEST_P(Failure, RefusedLaunch) {
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  ASSERT_EQ(tandemEmulatorFail("refuse:2"), 0);
  EXPECT_CU(launch(y, x, nullptr));
  EXPECT_CU_ERROR(launch(x, y, nullptr), LAUNCH_OUT_OF_RESOURCES);
  EXPECT_CU(launch(x, y, nullptr));
  EXPECT_EQ(get(x), 3.f);
}

// Fails when it runs: whoever waits is told, and everybody after that.
TEST_P(Failure, FailedLaunch) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), made = 0;
  set(x, 1);
  ASSERT_EQ(tandemEmulatorFail("launch:2"), 0);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(x, y, a));
  EXPECT_CU_ERROR(cuStreamSynchronize(a), LAUNCH_FAILED);
  EXPECT_CU_ERROR(cuStreamSynchronize(b), LAUNCH_FAILED);
  EXPECT_CU_ERROR(launch(x, y, b), LAUNCH_FAILED);
  EXPECT_CU_ERROR(cuMemAlloc_v2(&made, 64), LAUNCH_FAILED);
  EXPECT_CU_ERROR(cuCtxSynchronize(), LAUNCH_FAILED);
  // The context can still be left, and another one works after a reset.
  tandemEmulatorReset();
  set(x, 1);
  EXPECT_EQ(get(x), 1.f);
}

TEST_P(Failure, FailedLaunchInAGraph) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(x, y, a));
  EXPECT_CU(cuStreamEndCapture(a, &graph));
  EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_EQ(tandemEmulatorFail("launch:4"), 0);
  EXPECT_CU(cuGraphLaunch(exec, a));
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_CU(cuGraphLaunch(exec, a));
  EXPECT_CU_ERROR(cuStreamSynchronize(a), LAUNCH_FAILED);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

// Memory of a lost device can be released, with the device's error.
TEST_P(Failure, LostDevice) {
  CUstream a = stream();
  CUdeviceptr x = 0, y = 0;
  void *host = nullptr;
  EXPECT_CU(cuMemAllocAsync(&x, kBytes, a));
  EXPECT_CU(cuMemAlloc_v2(&y, kBytes));
  EXPECT_CU(cuMemHostAlloc(&host, kBytes, 0));
  EXPECT_CU(cuStreamSynchronize(a));
  ASSERT_EQ(tandemEmulatorFail("lost:1"), 0);
  EXPECT_CU_ERROR(launch(y, x, a), ECC_UNCORRECTABLE);
  EXPECT_CU_ERROR(cuStreamSynchronize(a), ECC_UNCORRECTABLE);
  EXPECT_CU_ERROR(cuMemFreeAsync(x, a), ECC_UNCORRECTABLE);
  EXPECT_CU_ERROR(cuMemFree_v2(y), ECC_UNCORRECTABLE);
  EXPECT_CU(cuMemFreeHost(host));
  EXPECT_EQ(tandemEmulatorLiveAllocations(), 0u);
}

// What was queued before the device was lost, a free among it, leaks nothing.
TEST_P(Failure, LostWithWorkQueued) {
  CUstream a = stream();
  CUdeviceptr x = 0, y = array();
  EXPECT_CU(cuMemAllocAsync(&x, kBytes, a));
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, a));
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuMemFreeAsync(x, a));
  ASSERT_EQ(tandemEmulatorFail("lost:1"), 0);
  EXPECT_CU_ERROR(launch(y, y, a), ECC_UNCORRECTABLE);
  EXPECT_EQ(tandemEmulatorLiveAllocations(), 1u);
}

TEST_P(Failure, ModuleDriverAndInit) {
  CUmodule module = nullptr;
  ASSERT_EQ(tandemEmulatorFail("module:1,driver:11080,init:803"), 0);
  EXPECT_CU_ERROR(cuModuleLoadData(&module, ".version 7.0\n.target sm_80\n"),
                  INVALID_IMAGE);
  int version = 0;
  EXPECT_CU(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 11080);
  EXPECT_CU_ERROR(cuInit(0), SYSTEM_DRIVER_MISMATCH);
  EXPECT_EQ(tandemEmulatorFail(nullptr), 0);
  EXPECT_CU(cuInit(0));
}

TEST_P(Failure, Texts) {
  for (const char *text :
       {"", "alloc", "alloc:", "alloc:0", "alloc:-1", "alloc:1x", "other:1",
        "alloc:1,", "driver:99999999"})
    EXPECT_EQ(tandemEmulatorFail(text), 1) << text;
  tandemEmulatorFail(nullptr);
}
