//===- MemoryTest.cpp - memory, its life and its bounds -------------------===//
#include "EmulatorTest.h"

#include <cmath>
#include <cstring>

using namespace tandem::test;

namespace {
class Memory : public Emulator {};
class MemoryAlways : public EveryPolicy {
protected:
  CUdeviceptr allocate(CUstream on, size_t bytes = kBytes) {
    CUdeviceptr result = 0;
    EXPECT_CU(cuMemAllocAsync(&result, bytes, on));
    return result;
  }
};
TANDEM_EVERY_POLICY(MemoryAlways);

template <typename T> T attribute(CUpointer_attribute which, CUdeviceptr at) {
  T value = {};
  EXPECT_CU(cuPointerGetAttribute(&value, which, at));
  return value;
}
} // namespace

TEST_F(Memory, FreshIsPoisoned) {
  EXPECT_TRUE(std::isnan(get(array())));
  EXPECT_TRUE(std::isnan(pinned()[3]));
  CUdeviceptr pooled = 0;
  EXPECT_CU(cuMemAllocAsync(&pooled, kBytes, nullptr));
  EXPECT_TRUE(std::isnan(get(pooled)));
  EXPECT_CU(cuMemFreeAsync(pooled, nullptr));
}

TEST_F(Memory, CopiesAndFills) {
  CUdeviceptr x = array(), y = array();
  std::vector<uint8_t> bytes(kBytes);
  EXPECT_CU(cuMemsetD8Async(x, 0x11, kBytes, nullptr));
  EXPECT_CU(cuMemsetD16Async(x + 4, 0x2233, 2, nullptr));
  EXPECT_CU(cuMemsetD32Async(x + 8, 0x44556677, 1, nullptr));
  EXPECT_CU(cuMemcpyDtoDAsync_v2(y, x, kBytes, nullptr));
  EXPECT_CU(cuMemcpyAsync(CUdeviceptr(bytes.data()), y, kBytes, nullptr));
  const uint8_t expected[] = {0x11, 0x11, 0x11, 0x11, 0x33, 0x22, 0x33,
                              0x22, 0x77, 0x66, 0x55, 0x44, 0x11};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
  EXPECT_EQ(bytes.back(), 0x11);
}

TEST_F(Memory, RowsOfAMatrix) {
  // Columns 1 and 2 of a 3 x 4 matrix, to the rows of a 3 x 2 one.
  CUdeviceptr x = array(), y = array();
  std::vector<float> matrix(12), part(6);
  for (int i = 0; i < 12; ++i)
    matrix[i] = float(i);
  EXPECT_CU(cuMemcpyHtoD_v2(x, matrix.data(), 48));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = x;
  copy.srcXInBytes = 4;
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = y;
  copy.dstPitch = 8;
  copy.WidthInBytes = 8;
  copy.Height = 3;
  EXPECT_CU(cuMemcpy2DAsync_v2(&copy, nullptr));
  EXPECT_CU(cuMemcpyDtoH_v2(part.data(), y, 24));
  EXPECT_EQ(part, (std::vector<float>{1, 2, 5, 6, 9, 10}));
  // From the host, whose rows are read at the call.
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = matrix.data() + 1;
  EXPECT_CU(cuMemcpy2DAsync_v2(&copy, nullptr));
  EXPECT_CU(cuMemcpyDtoH_v2(part.data(), y, 24));
  EXPECT_EQ(part, (std::vector<float>{2, 3, 6, 7, 10, 11}));
  copy.dstPitch = 4;
  EXPECT_CU_ERROR(cuMemcpy2DAsync_v2(&copy, nullptr), INVALID_VALUE);
}

TEST_F(Memory, BoundsOfCopies) {
  CUdeviceptr x = array(100);
  std::vector<char> host(256);
  EXPECT_CU_ERROR(cuMemcpyHtoD_v2(x, host.data(), 101), INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemcpyHtoD_v2(x + 60, host.data(), 41), INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemcpyHtoD_v2(x - 1, host.data(), 1), INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemsetD8Async(x, 0, 101, nullptr), INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemsetD32Async(x + 2, 0, 1, nullptr), INVALID_VALUE);
  EXPECT_CU_ERROR(
      cuMemcpyHtoDAsync_v2(CUdeviceptr(host.data()), host.data(), 1, nullptr),
      INVALID_VALUE);
  EXPECT_CU(cuMemcpyHtoD_v2(x + 60, host.data(), 40));
  EXPECT_CU(cuMemcpyHtoD_v2(x, host.data(), 0));
}

// A kernel that is given a pointer to the host, or too little memory.
TEST_P(MemoryAlways, BoundsOfKernels) {
  CUdeviceptr x = array(), little = array(kBytes - 4);
  std::vector<float> host(kElements);
  set(x, 1);
  EXPECT_CU(launch(little, x, nullptr));
  expectOneError({"kernel 'test_increment'", "writes 4096 bytes of memory 2",
                  "past its end (4092 bytes)"});
  EXPECT_CU(launch(x, CUdeviceptr(host.data()), nullptr));
  expectOneError({"reads 4096 bytes of no memory of the device"});
  EXPECT_EQ(get(x), 1.f);
}

TEST_F(Memory, FreedTwiceOrNotOurs) {
  CUdeviceptr x = 0;
  EXPECT_CU(cuMemAlloc_v2(&x, 64));
  EXPECT_CU_ERROR(cuMemFree_v2(x + 8), INVALID_VALUE);
  EXPECT_CU(cuMemFree_v2(x));
  EXPECT_CU_ERROR(cuMemFree_v2(x), INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemFreeAsync(x, nullptr), INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemFreeHost(&x), INVALID_VALUE);
  EXPECT_CU(cuMemFree_v2(0));
  EXPECT_CU(cuMemFreeHost(nullptr));
  EXPECT_CU_ERROR(cuMemAlloc_v2(&x, 0), INVALID_VALUE);
}

TEST_P(MemoryAlways, UseAfterFree) {
  CUstream a = stream();
  CUdeviceptr x = allocate(a), y = array();
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, a));
  EXPECT_CU(cuMemFreeAsync(x, a));
  EXPECT_CU(launch(y, x, a));
  expectOneError({"kernel 'test_increment'", "reads 4096 bytes of freed memory",
                  "freed by free of memory"});
  std::vector<char> host(16);
  EXPECT_CU_ERROR(cuMemcpyDtoH_v2(host.data(), x, 16), INVALID_VALUE);
  expectOneError({"a copy uses freed memory", "freed by free of memory"});
}

// The driver waits for who uses memory that is freed, but not if it is a
// pool's.
TEST_F(Memory, FreedWhileItIsUsed) {
  EXPECT_EQ(tandemEmulatorSetPolicy("lazy"), 0);
  CUstream a = stream();
  CUdeviceptr y = array();
  for (bool isOfPool : {false, true}) {
    CUdeviceptr x = 0;
    if (isOfPool) {
      EXPECT_CU(cuMemAllocAsync(&x, kBytes, a));
    } else {
      EXPECT_CU(cuMemAlloc_v2(&x, kBytes));
    }
    EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, a));
    EXPECT_CU(cuStreamSynchronize(a));
    EXPECT_CU(launch(y, x, a));
    EXPECT_CU(cuMemFree_v2(x));
    if (isOfPool) {
      expectOneError({"the host frees"});
    } else {
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u);
    }
  }
}

// Freed on one stream while another one may still use it.
TEST_P(MemoryAlways, FreedTooEarly) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = allocate(a), y = array();
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, a));
  order(a, b);
  EXPECT_CU(launch(y, x, b));
  EXPECT_CU(cuMemFreeAsync(x, a));
  expectOneError({"kernel 'test_increment'", "free of memory"});
}

TEST_P(MemoryAlways, FreedInTime) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = allocate(a), y = array();
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, a));
  order(a, b);
  EXPECT_CU(launch(y, x, b));
  order(b, a);
  EXPECT_CU(cuMemFreeAsync(x, a));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(get(y), 1.f);
}

// Memory of a stream is not there on another one that does not wait.
TEST_P(MemoryAlways, UsedBeforeItIsThere) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = allocate(a);
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, b));
  expectOneError({"memset", "allocation of 4096 bytes"});
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_CU(cuMemFreeAsync(x, a));
  takeErrors();
}

// Memory that is freed and allocated again is other memory for who looks.
TEST_P(MemoryAlways, AddressesAreNotUsedAgain) {
  CUstream a = stream();
  std::set<CUdeviceptr> seen;
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr x = allocate(a);
    EXPECT_TRUE(seen.insert(x).second);
    EXPECT_EQ(x % 256, 0u);
    EXPECT_CU(cuMemFreeAsync(x, a));
  }
}

TEST_P(MemoryAlways, FreeingWaitsForTheDevice) {
  CUstream a = stream();
  CUdeviceptr x = 0, y = array();
  EXPECT_CU(cuMemAlloc_v2(&x, kBytes));
  set(x, 3);
  EXPECT_CU(launch(y, x, a));
  const uint64_t syncs = tandemEmulatorGetCounts().syncs;
  EXPECT_CU(cuMemFree_v2(x));
  EXPECT_EQ(tandemEmulatorGetCounts().syncs, syncs + 1);
  EXPECT_EQ(get(y), 4.f);
}

TEST_P(MemoryAlways, PinnedFreedTooEarly) {
  CUstream a = stream();
  CUdeviceptr x = array();
  void *in = nullptr;
  EXPECT_CU(cuMemHostAlloc(&in, kBytes, 0));
  EXPECT_CU(cuMemcpyHtoDAsync_v2(x, in, kBytes, a));
  EXPECT_CU(cuMemFreeHost(in));
  expectOneError({"the host frees host memory", "copy to device"});
}

// Pageable memory is read, or written, when the call returns.
TEST_P(MemoryAlways, PageableMemoryIsDoneOnReturn) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  std::vector<float> host(kElements, 4.f);
  EXPECT_CU(cuMemcpyHtoDAsync_v2(x, host.data(), kBytes, a));
  std::fill(host.begin(), host.end(), 0.f);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuMemcpyDtoHAsync_v2(host.data(), y, kBytes, a));
  EXPECT_EQ(host, std::vector<float>(kElements, 5.f));
}

TEST_F(Memory, RegisteredMemory) {
  std::vector<float> host(kElements, 2.f);
  EXPECT_CU(cuMemHostRegister_v2(host.data(), kBytes, 0));
  EXPECT_CU_ERROR(cuMemHostRegister_v2(host.data() + 8, 4, 0),
                  HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr same = 0;
  EXPECT_CU(cuMemHostGetDevicePointer_v2(&same, host.data(), 0));
  EXPECT_EQ(same, CUdeviceptr(host.data()));
  ASSERT_EQ(tandemEmulatorSetPolicy("lazy"), 0);
  CUdeviceptr x = array();
  EXPECT_CU(cuMemcpyHtoDAsync_v2(x, host.data(), kBytes, nullptr));
  EXPECT_CU(cuStreamSynchronize(nullptr));
  EXPECT_CU(cuMemHostUnregister(host.data()));
  EXPECT_CU_ERROR(cuMemHostUnregister(host.data()), HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(get(x), 2.f);
}

TEST_F(Memory, Pointers) {
  CUdeviceptr x = array(1000);
  float *host = pinned(), pageable = 0;
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x + 999),
            CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(
      attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUdeviceptr(host)),
      CU_MEMORYTYPE_HOST);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x), 0);
  EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, x), context);
  EXPECT_EQ(
      attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, x + 10), x);
  EXPECT_EQ(attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, x + 10), 1000u);
  EXPECT_EQ(
      attribute<void *>(CU_POINTER_ATTRIBUTE_HOST_POINTER, CUdeviceptr(host)),
      host);
  unsigned type = 9;
  for (CUdeviceptr bad : {x + 1000, CUdeviceptr(&pageable), CUdeviceptr(0)})
    EXPECT_CU_ERROR(
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, bad),
        INVALID_VALUE);
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void *pointer = host;
  void *values[] = {&type, &pointer};
  EXPECT_CU(cuPointerGetAttributes(2, which, values, CUdeviceptr(&pageable)));
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_CU(cuPointerGetAttributes(2, which, values, x));
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_CU(cuMemGetAddressRange_v2(&base, &bytes, x + 7));
  EXPECT_EQ(base, x);
  EXPECT_EQ(bytes, 1000u);
}

TEST_F(Memory, Pools) {
  CUmemPoolProps properties = {};
  properties.allocType = 1;
  properties.location = {1, 0};
  properties.maxSize = 8192;
  CUmemoryPool pool = nullptr, standard = nullptr;
  EXPECT_CU(cuMemPoolCreate(&pool, &properties));
  EXPECT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  uint64_t value = ~uint64_t(0);
  EXPECT_CU(
      cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  CUdeviceptr x = 0, y = 0;
  EXPECT_CU(cuMemAllocFromPoolAsync(&x, 5000, pool, nullptr));
  EXPECT_CU_ERROR(cuMemAllocFromPoolAsync(&y, 5000, pool, nullptr),
                  OUT_OF_MEMORY);
  EXPECT_CU(
      cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  EXPECT_EQ(value, 5000u);
  EXPECT_CU(cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                  &value));
  EXPECT_EQ(value, 0u);
  EXPECT_EQ(attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, x),
            pool);
  EXPECT_CU(cuMemFreeAsync(x, nullptr));
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  EXPECT_EQ(value, 5000u);
  EXPECT_CU(cuMemPoolTrimTo(pool, 0));
  EXPECT_CU_ERROR(cuMemPoolDestroy(standard), INVALID_VALUE);
  EXPECT_CU(cuMemPoolDestroy(pool));
  EXPECT_CU_ERROR(cuMemPoolTrimTo(pool, 0), INVALID_VALUE);
}

TEST_P(MemoryAlways, Limit) {
  tandemEmulatorSetMemory(4 * kBytes);
  CUstream a = stream();
  size_t free = 0, total = 0;
  CUdeviceptr x = allocate(a, 3 * kBytes), y = 0;
  EXPECT_CU(cuMemGetInfo_v2(&free, &total));
  EXPECT_EQ(total, 4 * kBytes);
  EXPECT_EQ(free, kBytes);
  EXPECT_CU_ERROR(cuMemAlloc_v2(&y, 2 * kBytes), OUT_OF_MEMORY);
  EXPECT_CU(cuMemFreeAsync(x, a));
  EXPECT_CU(cuMemAlloc_v2(&y, 2 * kBytes)); // once the free has run
  EXPECT_CU(cuMemFree_v2(y));
}
