//===- DeviceTest.cpp - devices, contexts and the table of functions ------===//
#include "EmulatorTest.h"

#include <cstring>
#include <thread>

extern "C" tandem::cuda::driver::CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int version,
                    uint64_t flags, int *status);

using namespace tandem::test;

namespace {
class Devices : public Emulator {};

/// The second device, with its context.
class TwoDevices : public EveryPolicy {
protected:
  void SetUp() override {
    EveryPolicy::SetUp();
    tandemEmulatorSetDevices(2);
    ASSERT_CU(cuInit(0));
    ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  }
  void TearDown() override {
    EXPECT_CU(cuDevicePrimaryCtxRelease_v2(1));
    Emulator::TearDown();
  }
  /// Runs with the second device's context current.
  template <typename Body> void onSecond(Body &&body) {
    EXPECT_CU(cuCtxPushCurrent_v2(second));
    body();
    CUcontext popped = nullptr;
    EXPECT_CU(cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, second);
  }
  CUcontext second = nullptr;
};
TANDEM_EVERY_POLICY(TwoDevices);

int attribute(CUdevice_attribute which, int device = 0) {
  int value = -1;
  EXPECT_CU(cuDeviceGetAttribute(&value, which, device));
  return value;
}
} // namespace

TEST_F(Devices, WhatItIs) {
  int version = 0, count = 0;
  EXPECT_CU(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  EXPECT_CU(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 1);
  CUdevice device = -1;
  EXPECT_CU(cuDeviceGet(&device, 0));
  EXPECT_CU_ERROR(cuDeviceGet(&device, 1), INVALID_DEVICE);
  char name[64];
  EXPECT_CU(cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_STREQ(name, "Tandem CUDA emulator");
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 132);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            227 * 1024);
  tandemEmulatorSetCapability(8, 6);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 8);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 6);
  size_t bytes = 0;
  EXPECT_CU(cuDeviceTotalMem_v2(&bytes, 0));
  EXPECT_EQ(bytes, size_t(16) << 30);
}

TEST_F(Devices, None) {
  tandemEmulatorSetDevices(0);
  EXPECT_CU_ERROR(cuInit(0), NO_DEVICE);
  tandemEmulatorReset();
  EXPECT_CU(cuInit(0));
  EXPECT_CU_ERROR(cuInit(1), INVALID_VALUE);
}

TEST_F(Devices, Contexts) {
  CUcontext current = nullptr;
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context);
  CUdevice device = -1;
  EXPECT_CU(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_CU_ERROR(cuCtxSetCurrent(reinterpret_cast<CUcontext>(this)),
                  INVALID_CONTEXT);
  unsigned flags = 0;
  int active = 0;
  EXPECT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_CU_ERROR(cuDevicePrimaryCtxRelease_v2(7), INVALID_DEVICE);
  // A thread has no context of its own accord.
  std::thread([&] {
    CUdeviceptr x = 0;
    EXPECT_CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    EXPECT_CU_ERROR(cuMemAlloc_v2(&x, 4), INVALID_CONTEXT);
    EXPECT_CU_ERROR(cuCtxSynchronize(), INVALID_CONTEXT);
    EXPECT_CU_ERROR(cuCtxPopCurrent_v2(&current), INVALID_CONTEXT);
  }).join();
}

TEST_F(Devices, TableOfFunctions) {
  void *function = nullptr;
  int status = 9;
  EXPECT_CU(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void *>(&cuMemAlloc_v2));
  EXPECT_EQ(status, 0);
  EXPECT_CU(cuGetProcAddress_v2("cuMemcpyAsync", &function, 12000, 0, nullptr));
  EXPECT_EQ(function, reinterpret_cast<void *>(&cuMemcpyAsync));
  EXPECT_CU_ERROR(
      cuGetProcAddress_v2("cuMemAllocX", &function, 12000, 0, &status),
      NOT_FOUND);
  EXPECT_EQ(status, 1);
}

TEST_F(Devices, NamesOfErrors) {
  const char *text = nullptr;
  EXPECT_CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_CU_ERROR(cuGetErrorName(static_cast<CUresult>(12345), &text),
                  INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST_P(TwoDevices, CopiesBetweenThem) {
  CUdeviceptr x = array(), y = 0;
  set(x, 5);
  CUstream there = nullptr, here = stream();
  onSecond([&] {
    EXPECT_CU(cuMemAlloc_v2(&y, kBytes));
    EXPECT_CU(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
  });
  EXPECT_STREQ(tandemEmulatorStreamName(there), "s2@1");
  EXPECT_CU(cuMemcpyPeerAsync(y, second, x, context, kBytes, here));
  CUevent e = event();
  EXPECT_CU(cuEventRecord(e, here));
  EXPECT_CU(cuStreamWaitEvent(there, e, 0));
  std::vector<float> values(kElements);
  EXPECT_CU(cuMemcpyDtoHAsync_v2(values.data(), y, kBytes, there));
  EXPECT_EQ(values[7], 5.f);
  EXPECT_CU_ERROR(cuEventRecord(e, there), INVALID_HANDLE);
  EXPECT_CU(cuStreamSynchronize(there));
  EXPECT_CU(cuMemFree_v2(y));
  EXPECT_CU(cuStreamDestroy_v2(there));
}

// Default streams of two devices know nothing of each other.
TEST_P(TwoDevices, DefaultStreams) {
  CUdeviceptr x = array();
  set(x, 5);
  EXPECT_CU(cuMemsetD8Async(x, 0, 4, nullptr));
  onSecond([&] { EXPECT_CU(cuMemsetD8Async(x, 0, 4, nullptr)); });
  expectOneError({"default)", "default@1"});
  EXPECT_CU(cuCtxSynchronize());
  onSecond([&] { EXPECT_CU(cuCtxSynchronize()); });
}

// Each node of a graph runs on the device of the stream that it was captured
// on.
TEST_P(TwoDevices, CaptureOnBoth) {
  CUdeviceptr x = 0, y = 0;
  CUstream here = stream(), there = nullptr;
  CUevent back = nullptr;
  onSecond([&] {
    EXPECT_CU(cuMemAlloc_v2(&x, kBytes));
    EXPECT_CU(cuMemAlloc_v2(&y, kBytes));
    set(x, 1);
    EXPECT_CU(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
  });
  EXPECT_CU(cuStreamBeginCapture_v2(here, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  order(here, there);
  EXPECT_CU(launch(y, x, there));
  onSecond([&] { EXPECT_CU(cuEventRecord(back, there)); });
  EXPECT_CU(cuStreamWaitEvent(here, back, 0));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuStreamEndCapture(here, &graph));
  EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_CU(cuGraphLaunch(exec, here));
  EXPECT_CU(cuStreamSynchronize(here));
  EXPECT_EQ(get(y), 2.f);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuEventDestroy_v2(back));
  EXPECT_CU(cuStreamDestroy_v2(there));
  EXPECT_CU(cuMemFree_v2(x));
  EXPECT_CU(cuMemFree_v2(y));
}

TEST_P(TwoDevices, PeerAccess) {
  CUdeviceptr x = 0, y = array();
  set(y, 0);
  onSecond([&] {
    EXPECT_CU(cuMemAlloc_v2(&x, kBytes));
    int device = -1;
    EXPECT_CU(
        cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x));
    EXPECT_EQ(device, 1);
  });
  int can = 0;
  EXPECT_CU(cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_CU(launch(x, y, nullptr));
  expectOneError({"writes 4096 bytes of memory 2 at byte 0 of device 1 without "
                  "access to it"});
  EXPECT_CU(cuCtxEnablePeerAccess(second, 0));
  EXPECT_CU(launch(x, y, nullptr));
  EXPECT_CU_ERROR(cuCtxEnablePeerAccess(second, 0),
                  PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_CU_ERROR(cuCtxEnablePeerAccess(context, 0), INVALID_CONTEXT);
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(get(x), 1.f);
  EXPECT_CU(cuMemFree_v2(x));
}
