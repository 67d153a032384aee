//===- DeviceTest.cpp - memory, copies and waits of a device --------------===//
//
// The device layer without programs, over the driver emulator.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/Half.h"
#include "tests/cuda/Emulated.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

using namespace tandem;
using namespace tandem::test;
using artifact::DType;
using runtime::Fence;
using runtime::Stream;
using runtime::StridedCopy;

namespace {

class CudaDevice : public Emulated {
protected:
  void SetUp() override {
    Emulated::SetUp();
    open();
  }
  void release(void *data, Stream on = nullptr,
               std::vector<Stream> others = {}) {
    device->release(data, on, others);
  }
};

TEST_F(CudaDevice, SaysWhatItIs) {
  EXPECT_EQ(device->description(), "Tandem CUDA emulator, sm_90, 132 "
                                   "multiprocessors, 16.0 GiB, driver 13.0");
  EXPECT_FALSE(device->isLost());
}

TEST_F(CudaDevice, MemoryIsKeptForTheNextUse) {
  Stream s = stream(0);
  void *a = allocate(1000, s), *b = allocate(1000, s);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_NE(a, b);
  release(a, s);
  uint64_t before = tandemEmulatorGetCounts().allocations;
  EXPECT_EQ(allocate(1000, s), a);
  release(a, s);
  EXPECT_EQ(allocate(990, s), a); // fits
  EXPECT_EQ(tandemEmulatorGetCounts().allocations, before);
  // Another stream would have to wait.
  release(a, s);
  void *c = allocate(1000, nullptr);
  EXPECT_NE(c, a);
  // Much smaller ones do not take it.
  void *d = allocate(100, s);
  EXPECT_NE(d, a);
  for (void *data : {b, d})
    release(data, s);
  release(c);
  EXPECT_EQ(gpu().memoryUsage().used, 0);
}

// S14: what is freed on a while b uses it is not used anew before b is done.
TEST_F(CudaDevice, S14_BytesWaitForTheirOtherUsers) {
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    Stream a = stream(0), b = stream(1);
    float *data = allocate(64, a), *to = allocate(64, b);
    upload(data, range(64), a);
    expectOk(device->wait(b, a));
    tandemEmulatorDelay(b, 1000000);
    expectOk(device->copy(to, data, 256, b));
    std::vector<Stream> others = {b};
    device->release(data, a, others);
    // Whatever a gets now and overwrites, b reads the old bytes.
    float *other = allocate(64, a);
    expectOk(device->fill(DType::F32, other, -1, 64, a));
    expectOk(device->synchronize(a));
    EXPECT_EQ(download(to, 64, b), range(64));
    // b is done: now the bytes can be had again, if they were not at once.
    float *again = allocate(64, a);
    EXPECT_TRUE(again == data || other == data);
    EXPECT_TRUE(other != data || policy == std::string("eager"));
    for (float *freed : {other, again})
      release(freed, a);
    release(to, b);
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
}

// S14: and when there is no other memory, a waits for b before it uses them.
TEST_F(CudaDevice, S14_WaitsForOtherUsersWhenMemoryIsShort) {
  tandemEmulatorSetPolicy("lazy");
  Stream a = stream(0), b = stream(1);
  float *data = allocate(64, a), *to = allocate(64, b);
  upload(data, range(64), a);
  expectOk(device->wait(b, a));
  expectOk(device->copy(to, data, 256, b));
  std::vector<Stream> others = {b};
  device->release(data, a, others);
  tandemEmulatorFail("alloc:1");
  float *again = allocate(64, a);
  EXPECT_EQ(again, data);
  expectOk(device->fill(DType::F32, again, -1, 64, a));
  expectOk(device->synchronize(a));
  EXPECT_EQ(download(to, 64, b), range(64));
  EXPECT_EQ(download(again, 64, a), std::vector<float>(64, -1));
  release(again, a);
  release(to, b);
}

TEST_F(CudaDevice, OutOfMemorySaysWhatIsFree) {
  close();
  tandemEmulatorSetMemory(int64_t(64) << 20);
  open();
  Stream s = stream(0), t = stream(1);
  void *small = allocate(1 << 20, s);
  Result<void *> large = device->allocate(int64_t(100) << 20, s);
  ASSERT_FALSE(large.ok());
  expectError(large.status(), "out of memory on device 'cuda:0': expected "
                              "104857600 bytes beside the 4194304 in use");
  expectError(large.status(), " are free (");
  expectError(large.status(), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_FALSE(device->isLost());
  // What is kept for one stream helps another out.
  void *kept = *device->allocate(int64_t(40) << 20, s);
  release(kept, s);
  Result<void *> other = device->allocate(int64_t(50) << 20, t);
  ASSERT_TRUE(other.ok()) << other.status().message();
  release(*other, t);
  release(small, s);
  close();
  tandemEmulatorSetMemory(int64_t(16) << 30);
}

TEST_F(CudaDevice, MemoryIsBoundedByALimit) {
  Stream s = stream(0), t = stream(1);
  expectOk(device->limitMemory(int64_t(64) << 20));
  void *small = allocate(1 << 20, s); // 4 MiB
  Result<void *> large = device->allocate(int64_t(62) << 20, s);
  ASSERT_FALSE(large.ok());
  expectError(
      large.status(),
      "out of memory on device 'cuda:0': expected 65011712 bytes beside "
      "the 4194304 in use, but the limit that was set is 67108864");
  EXPECT_FALSE(device->isLost());
  // Up to it; and what one stream keeps is another one's.
  void *kept = *device->allocate(int64_t(60) << 20, s);
  release(kept, s);
  Result<void *> other = device->allocate(int64_t(50) << 20, t);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(gpu().memoryUsage().used, int64_t(54) << 20);
  EXPECT_EQ(gpu().memoryUsage().kept, 0);
  release(*other, t);
  // A lower one gives back what is kept and leaves what is in use.
  expectOk(device->limitMemory(1 << 20));
  EXPECT_EQ(gpu().memoryUsage().kept, 0);
  EXPECT_EQ(gpu().memoryUsage().used, 4 << 20);
  expectError(
      device->allocate(512, s).status(),
      "expected 512 bytes beside the 4194304 in use, but the limit that "
      "was set is 1048576");
  expectError(device->limitMemory(-1), "expected a memory limit of at least 0 "
                                       "bytes but got -1");
  expectOk(device->limitMemory(0));
  other = device->allocate(int64_t(100) << 20, t);
  ASSERT_TRUE(other.ok()) << other.status().message();
  release(*other, t);
  release(small, s);
}

// What a lower limit gives back is waited for, and that may fail.
TEST_F(CudaDevice, ALimitSaysWhatItsWaitsFoundOut) {
  tandemEmulatorSetPolicy("lazy");
  Stream s = stream(0);
  float *data = allocate(64, s);
  expectOk(device->fill(DType::F32, data, 1, 64, s));
  tandemEmulatorFail("launch:1");
  expectOk(device->add(DType::F32, data, data, data, 64, s));
  release(data, s);
  expectError(device->limitMemory(1),
              "device 'cuda:0': cuEventQuery failed: CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_TRUE(device->isLost());
  hasErrors = true; // the failure itself
}

TEST_F(CudaDevice, CopiesInEveryDirection) {
  // Several pieces of staging memory, and an odd end.
  const size_t count = (9 << 20) / 4 + 3;
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    Stream s = stream(0), t = stream(1);
    std::vector<float> values = range(count);
    float *a = allocate(count, s), *b = allocate(count, t);
    auto bytes = static_cast<int64_t>(count * 4);
    upload(a, values, s);
    std::fill(values.begin(), values.end(), -1.0f); // it was read
    expectOk(device->wait(t, s));
    expectOk(device->copy(b, a, bytes, t));
    EXPECT_EQ(download(b, count, t), range(count));
    // Pinned memory is copied in the stream's order.
    auto *pinned = static_cast<float *>(*device->allocatePinned(bytes));
    expectOk(device->copy(pinned, b, bytes, t));
    expectOk(device->synchronize(t));
    EXPECT_EQ(std::vector<float>(pinned, pinned + count), range(count));
    pinned[0] = 77;
    expectOk(device->copy(b, pinned, bytes, t));
    EXPECT_EQ(download(b, 1, t), std::vector<float>{77});
    device->releasePinned(pinned);
    release(a, s);
    release(b, t);
    std::vector<float> host(2);
    expectOk(device->copy(host.data(), values.data(), 8, s));
    EXPECT_EQ(host[1], -1);
  }
}

TEST_F(CudaDevice, KnowsItsMemory) {
  float *data = allocate(64);
  std::vector<float> host(64);
  void *pinned = *device->allocatePinned(64);
  EXPECT_TRUE(device->owns(data));
  EXPECT_TRUE(device->owns(data + 63));
  EXPECT_FALSE(device->owns(host.data()));
  EXPECT_FALSE(device->owns(pinned));
  EXPECT_FALSE(device->owns(nullptr));
  device->releasePinned(pinned);
  release(data);
}

/// The elements that a strided copy writes, by the definition.
void copyByDefinition(const StridedCopy &copy, size_t d, char *to,
                      const char *from) {
  if (d == copy.sizes.size()) {
    std::copy_n(from, copy.elementBytes, to);
    return;
  }
  for (int64_t i = 0; i < copy.sizes[d]; ++i)
    copyByDefinition(copy, d + 1, to + i * copy.toStrides[d],
                     from + i * copy.fromStrides[d]);
}

TEST_F(CudaDevice, StridedCopies) {
  std::mt19937 random(3);
  auto upTo = [&](int n) { return static_cast<int64_t>(random() % (n + 1)); };
  constexpr size_t space = 1 << 16;
  auto *from = reinterpret_cast<char *>(allocate(space / 4));
  auto *to = reinterpret_cast<char *>(allocate(space / 4));
  std::vector<char> source(space), result(space), expected(space);
  for (char &c : source)
    c = static_cast<char>(random());
  expectOk(device->copy(from, source.data(), space, nullptr));
  for (int round = 0; round < 300; ++round) {
    // A permuted, sliced, broadcast and reversed source; a permuted target.
    int64_t element = int64_t(1) << upTo(3);
    size_t rank = static_cast<size_t>(upTo(round % 10 == 0 ? 12 : 4));
    int most = rank > 5 ? 1 : 4;
    if (round % 7 == 0 && rank > 0)
      most = 12;
    std::vector<int64_t> sizes(rank), toStrides(rank), fromStrides(rank);
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t step = element * (1 + upTo(1)), room = element;
    for (size_t d : order) {
      sizes[d] = std::min<int64_t>(1 + upTo(most), 16);
      if (step * sizes[d] > int64_t(space) / 2)
        sizes[d] = 1;
      toStrides[d] = step;
      step *= sizes[d] + upTo(1) * (rank < 5);
    }
    std::shuffle(order.begin(), order.end(), random);
    int64_t start = 0, fromStep = element;
    for (size_t d : order) {
      bool isBroadcast = upTo(5) == 0, isReversed = upTo(5) == 0;
      if (fromStep * sizes[d] > int64_t(space) / 2)
        isBroadcast = true;
      fromStrides[d] = isBroadcast ? 0 : isReversed ? -fromStep : fromStep;
      if (isReversed && !isBroadcast)
        start += fromStep * (sizes[d] - 1);
      if (!isBroadcast)
        fromStep *= sizes[d] + upTo(1) * (rank < 5);
      room = std::max(room, fromStep);
    }
    if (upTo(20) == 0 && rank > 0)
      sizes[0] = 0;
    StridedCopy copy{to, from + start, sizes, toStrides, fromStrides, element};
    expectOk(device->zero(to, space, nullptr));
    expectOk(device->copyStrided(copy, nullptr));
    expectOk(device->copy(result.data(), to, space, nullptr));
    std::fill(expected.begin(), expected.end(), 0);
    copyByDefinition(copy, 0, expected.data(), source.data() + start);
    ASSERT_EQ(result, expected) << "round " << round << ", rank " << rank;
  }
  release(from);
  release(to);
}

TEST_F(CudaDevice, LongRowsAreCopiedByTheCopyEngine) {
  float *from = allocate(4096), *to = allocate(4096);
  upload(from, range(4096));
  upload(to, std::vector<float>(4096, 0));
  const int64_t sizes[] = {4, 256}, toStrides[] = {1024, 4},
                fromStrides[] = {4096, 4};
  uint64_t launches = tandemEmulatorGetCounts().launches;
  expectOk(device->copyStrided({to, from, sizes, toStrides, fromStrides, 4},
                               nullptr));
  EXPECT_EQ(tandemEmulatorGetCounts().launches, launches);
  std::vector<float> got = download(to, 4096);
  EXPECT_EQ(got[255], 255);
  EXPECT_EQ(got[256], 1024);
  EXPECT_EQ(got[1023], 3 * 1024 + 255);
  EXPECT_EQ(got[1024], 0);
  release(from);
  release(to);
}

TEST_F(CudaDevice, FillsAndAddsEveryFloatingPointType) {
  const int64_t count = 1003; // no multiple of 16 bytes
  using runtime::bf16FromFloat;
  using runtime::f16FromFloat;
  for (int64_t offset : {int64_t(0), int64_t(1)}) { // and not aligned
    for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
      SCOPED_TRACE(spelling(dtype));
      int64_t size = byteSize(dtype);
      auto *x = reinterpret_cast<char *>(allocate(count * 2 + 2));
      auto *y = reinterpret_cast<char *>(allocate(count * 2 + 2));
      char *a = x + offset * size, *b = y + offset * size;
      expectOk(device->fill(dtype, a, 1.5, count, nullptr));
      expectOk(device->fill(dtype, b, -0.3, count, nullptr));
      expectOk(device->add(dtype, a, a, b, count, nullptr)); // in place
      expectOk(device->add(dtype, b, a, a, count, nullptr));
      std::vector<char> got(count * size);
      expectOk(device->copy(got.data(), b, count * size, nullptr));
      auto at = [&](int64_t i) -> double {
        const char *p = got.data() + i * size;
        uint16_t half;
        std::memcpy(&half, p, 2);
        switch (dtype) {
        case DType::F16:
          return runtime::floatFromF16(half);
        case DType::BF16:
          return runtime::floatFromBF16(half);
        case DType::F32: {
          float value;
          std::memcpy(&value, p, 4);
          return value;
        }
        default: {
          double value;
          std::memcpy(&value, p, 8);
          return value;
        }
        }
      };
      double expected = 0;
      switch (dtype) {
      case DType::F64:
        expected = 2 * (1.5 + -0.3);
        break;
      case DType::F32:
        expected = 2 * (1.5f + -0.3f);
        break;
      case DType::F16:
        expected = 2 * runtime::floatFromF16(f16FromFloat(
                           1.5f + runtime::floatFromF16(f16FromFloat(-0.3f))));
        break;
      default:
        expected =
            2 * runtime::floatFromBF16(bf16FromFloat(
                    1.5f + runtime::floatFromBF16(bf16FromFloat(-0.3f))));
      }
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(at(i), expected) << i;
      release(x);
      release(y);
    }
  }
  float *x = allocate(4);
  expectError(device->add(DType::I32, x, x, x, 1, nullptr),
              "expected floating-point elements to add but got i32");
  expectError(device->fill(DType::I64, x, 1, 1, nullptr),
              "expected floating-point elements to fill but got i64");
  release(x);
}

// S08: on the same stream no event, on another one event and one wait, on the
// host no wait for the whole device.
TEST_F(CudaDevice, S08_WaitsByEvents) {
  Stream a = stream(0), b = stream(1);
  expectOk(device->wait(a, b)); // makes the event
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  expectOk(device->wait(a, a));
  EXPECT_EQ(tandemEmulatorGetCounts().eventRecords, before.eventRecords);
  expectOk(device->wait(b, a));
  EXPECT_EQ(tandemEmulatorGetCounts().eventRecords, before.eventRecords + 1);
  EXPECT_EQ(tandemEmulatorGetCounts().eventWaits, before.eventWaits + 1);
  EXPECT_EQ(tandemEmulatorGetCounts().syncs, before.syncs);

  tandemEmulatorSetPolicy("lazy");
  float *data = allocate(64, a);
  auto *pinned = static_cast<float *>(*device->allocatePinned(256));
  expectOk(device->fill(DType::F32, data, 4, 64, a));
  expectOk(device->copy(pinned, data, 256, a));
  Fence fence = nullptr;
  expectOk(device->record(fence, a));
  tandemEmulatorDelay(a, 1000000000); // after the point
  expectOk(device->waitFor(b, fence));
  expectOk(device->copy(data, pinned, 256, b));
  expectOk(device->await(fence));
  tandemEmulatorHostAccess(pinned, 256, 0);
  EXPECT_EQ(pinned[63], 4);
  EXPECT_LT(tandemEmulatorHostTime(), 1000000000u);
  expectOk(device->await(nullptr));
  expectOk(device->waitFor(b, nullptr));
  device->releaseFence(fence);
  expectOk(device->synchronize(b));
  expectOk(device->synchronize(a));
  device->releasePinned(pinned);
  std::vector<Stream> others = {b};
  device->release(data, a, others);
}

TEST_F(CudaDevice, SideStreamsStay) {
  EXPECT_EQ(stream(3), stream(3));
  EXPECT_NE(stream(3), stream(2));
}

TEST_F(CudaDevice, ALostDeviceFailsCleanly) {
  Stream s = stream(0);
  float *data = allocate(64, s);
  tandemEmulatorFail("lost:1");
  Status status = device->add(DType::F32, data, data, data, 64, s);
  if (status.ok())
    status = device->synchronize(s);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(device->isLost());
  expectError(device->synchronize(s), "device 'cuda:0' is lost: ");
  expectError(device->copy(data, data + 1, 4, s), "is lost");
  expectError(device->zero(data, 4, s), "is lost");
  expectError(device->allocate(64, s).status(), "is lost");
  expectError(device->wait(s, nullptr), "is lost");
  expectError(device->load(programs()).status(), "is lost");
  release(data, s);
  EXPECT_EQ(gpu().memoryUsage().used, 0);
  hasErrors = true; // the failure itself
}

TEST_F(CudaDevice, ALaunchThatIsRefusedHarmsNothing) {
  float *data = allocate(64);
  expectOk(device->fill(DType::F32, data, 1, 64, nullptr));
  tandemEmulatorFail("refuse:1");
  expectError(device->add(DType::F32, data, data, data, 64, nullptr),
              "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
  EXPECT_FALSE(device->isLost());
  expectOk(device->add(DType::F32, data, data, data, 64, nullptr));
  EXPECT_EQ(download(data, 64), std::vector<float>(64, 2));
  release(data);
}

class CudaOpen : public Emulated {};

TEST_F(CudaOpen, TooOldADriver) {
  tandemEmulatorFail("driver:11080");
  Result<std::shared_ptr<runtime::Backend>> opened = tryOpen();
  EXPECT_EQ(opened.status().code(), Code::NoDevice);
  expectError(opened.status(),
              "the driver is too old: expected one for CUDA 12.0 (525 or "
              "later) but got one for CUDA 11.8 ('");
  expectError(opened.status(),
              "'); a later driver runs all that this one does");
}

// It starts, and does not know the code's PTX.
TEST_F(CudaOpen, ADriverOlderThanTheCode) {
  tandemEmulatorFail("driver:12000");
  open();
  auto ofPtx = [](const char *version) {
    return programs({}, [&](artifact::ArtifactWriter &writer) {
      writer.addCode("ptx", std::string(".version ") + version +
                                "\n.target sm_80\n.address_size 64\n" + '\0');
    });
  };
  Status status = device->load(ofPtx("8.3")).status();
  expectError(status, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
  expectError(status, "; the driver, for CUDA 12.0, is older than the code's "
                      "PTX, version 8.3: expected a later driver, or code as a "
                      "cubin");
  EXPECT_FALSE(device->isLost());
}

TEST_F(CudaOpen, ADriverThatDoesNotStartSaysWhatToDo) {
  const std::pair<const char *, const char *> rows[] = {
      {"init:34", "to link with"},
      {"init:102", "; the virtual GPU has no license"},
      {"init:802", "(nvidia-fabricmanager)"},
      {"init:803", ": restart after an update"},
      {"init:804", "(cuda-compat)"}};
  for (auto [failure, says] : rows) {
    tandemEmulatorFail(nullptr);
    tandemEmulatorFail(failure);
    Result<std::shared_ptr<runtime::Backend>> opened = tryOpen();
    EXPECT_EQ(opened.status().code(), Code::NoDevice);
    expectError(opened.status(), says);
  }
}

// A slice of a GPU is what its driver says of it, as a whole one is.
TEST_F(CudaOpen, ASliceOfAGpu) {
  tandemEmulatorSetTraits("name=NVIDIA H200 MIG 1g.18gb,multiprocessors=16");
  tandemEmulatorSetMemory(size_t(18) << 30);
  open();
  EXPECT_EQ(device->description(), "NVIDIA H200 MIG 1g.18gb, sm_90, 16 "
                                   "multiprocessors, 18.0 GiB, driver 13.0");
  // A loop fills its multiprocessors, not those of a whole GPU.
  float *data = allocate(1 << 20);
  expectOk(device->fill(DType::F32, data, 1, 1 << 20, nullptr));
  expectOk(device->add(DType::F32, data, data, data, 1 << 20, nullptr));
  EXPECT_EQ(download(data, 3), std::vector<float>(3, 2));
  device->release(data, nullptr, {});
}

// Some virtual GPUs have no memory in stream order.
TEST_F(CudaOpen, ADeviceWithoutPools) {
  tandemEmulatorSetTraits("no-pools");
  open();
  float *data = allocate(64);
  upload(data, range(64));
  EXPECT_EQ(download(data, 64), range(64));
  device->release(data, nullptr, {});
}

TEST_F(CudaOpen, NoDevice) {
  tandemEmulatorFail("init:100");
  Result<std::shared_ptr<runtime::Backend>> opened = tryOpen();
  EXPECT_EQ(opened.status().code(), Code::NoDevice);
  expectError(opened.status(), "no CUDA device");
}

TEST_F(CudaOpen, ADriverThatDoesNotStart) {
  tandemEmulatorFail("init:803");
  Result<std::shared_ptr<runtime::Backend>> opened = tryOpen();
  EXPECT_EQ(opened.status().code(), Code::NoDevice);
  expectError(opened.status(), "the CUDA driver does not start: cuInit "
                               "returned CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (");
}

TEST_F(CudaOpen, NoSuchDevice) {
  Result<cuda::Driver> driver = cuda::Driver::open(TANDEM_EMULATOR);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  Result<std::shared_ptr<runtime::Backend>> opened =
      cuda::CudaDevice::open(std::make_shared<const cuda::Driver>(*driver),
                             {runtime::DeviceKind::Cuda, 9});
  EXPECT_EQ(opened.status().code(), Code::NoDevice);
  expectError(opened.status(), "no device 'cuda:9': expected one of 'cuda:0' "
                               "(Tandem CUDA emulator)");
  ::setenv("CUDA_VISIBLE_DEVICES", "GPU-6a1", 1);
  opened = cuda::CudaDevice::open(std::make_shared<const cuda::Driver>(*driver),
                                  {runtime::DeviceKind::Cuda, 9});
  expectError(opened.status(), "; CUDA_VISIBLE_DEVICES is 'GPU-6a1', which "
                               "hides all others");
  tandemEmulatorFail("init:100");
  expectError(tryOpen().status(), "finds none; CUDA_VISIBLE_DEVICES is "
                                  "'GPU-6a1', which");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

} // namespace
