//===- DeviceTensorTest.cpp - tensors on a device -------------------------===//
//
// Names of devices, memory, copies in every direction, conversions, and what
// other libraries exchange. The host cannot touch the device's memory.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <gtest/gtest.h>
#include <thread>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

using Sizes = std::vector<int64_t>;

class DeviceTensor : public ::testing::Test {
protected:
  ~DeviceTensor() override { device.finishAll(); }

  FakeDevice &device = FakeDevice::at(0);
  Device there = device.device();

  Tensor counted(const Sizes &shape) {
    Tensor tensor = *Tensor::empty(DType::F32, shape);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.mutableData<float>()[i] = static_cast<float>(i);
    return tensor;
  }
};

TEST(Devices, Names) {
  auto named = [](const char *name) { return toString(*parseDevice(name)); };
  EXPECT_EQ(named("cpu"), "cpu");
  EXPECT_EQ(named("cuda"), "cuda:0");
  EXPECT_EQ(named("cuda:12"), "cuda:12");
  EXPECT_EQ(named("cuda-emu"), "cuda-emu:0");
  EXPECT_EQ(named("cuda-emu:1"), "cuda-emu:1");
  for (const char *wrong : {"", "gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda:1x",
                            "cuda:99999999999", "cpu:0", "cuda emu"}) {
    Result<Device> device = parseDevice(wrong);
    EXPECT_EQ(device.status().code(), Code::Usage) << wrong;
    EXPECT_EQ(device.status().message(),
              "expected a device 'cpu', 'cuda[:N]' or 'cuda-emu[:N]' but got "
              "'" +
                  std::string(wrong) + "'");
  }
}

TEST(Devices, ThatAreNotThere) {
  FakeDevice::at(0);
  EXPECT_EQ(backendOf({DeviceKind::CudaEmu, 2}).status().message(),
            "device 'cuda-emu:2': there are 2 devices");
  EXPECT_EQ(backendOf({DeviceKind::Cuda, 0}).status().code(), Code::NoDevice);
  EXPECT_EQ((*backendOf(Device{}))->device(), Device{});
  EXPECT_EQ(Tensor::zeros(DType::F32, Sizes{1}, Device{DeviceKind::Cuda, 0})
                .status()
                .message(),
            "device 'cuda:0': this program has no layer for such devices");
}

TEST(Devices, CurrentStreamsAreOfAThreadAndADevice) {
  FakeDevice &one = FakeDevice::at(0), &other = FakeDevice::at(1);
  Stream s = one.makeStream(), t = one.makeStream();
  {
    StreamScope scope(one.device(), s);
    EXPECT_EQ(currentStream(one.device()), s);
    EXPECT_EQ(currentStream(other.device()), nullptr);
    {
      StreamScope inner(one.device(), t);
      EXPECT_EQ(currentStream(one.device()), t);
      StreamScope none(one.device(), nullptr);
      EXPECT_EQ(currentStream(one.device()), nullptr);
    }
    EXPECT_EQ(currentStream(one.device()), s);
    Stream seen = s;
    std::thread([&] { seen = currentStream(one.device()); }).join();
    EXPECT_EQ(seen, nullptr);
  }
  EXPECT_EQ(currentStream(one.device()), nullptr);
  setCurrentStream(Device{}, s);
  EXPECT_EQ(currentStream(Device{}), nullptr) << "the host has no streams";
}

TEST_F(DeviceTensor, IsCopiedBothWays) {
  Tensor host = counted({4, 6});
  Tensor far = *host.copyTo(there);
  EXPECT_EQ(toString(far.device()), "cuda-emu:0");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(far.data()) % storageAlignment, 0u);
  EXPECT_EQ(valuesOf(*far.onHost()), valuesOf(host));
  EXPECT_EQ(valuesOf(far), valuesOf(host)) << "one by one";
  EXPECT_TRUE(std::isnan(far.at(24))) << "no such element";
  EXPECT_EQ(host.onHost()->storage(), host.storage());
  EXPECT_EQ(valuesOf(*Tensor::zeros(DType::F32, Sizes{3}, there)),
            (std::vector<float>{0, 0, 0}));
}

TEST_F(DeviceTensor, IsCopiedWithStrides) {
  Tensor host = counted({4, 6});
  Tensor turned = *host.view(Sizes{6, 4}, Sizes{1, 6});
  Tensor far = *turned.copyTo(there); // from strided
  EXPECT_TRUE(far.isDense());
  EXPECT_EQ(valuesOf(*far.onHost()), valuesOf(turned));

  Tensor target = *Tensor::zeros(DType::F32, Sizes{4, 6}, there);
  Tensor targetTurned = *target.view(Sizes{6, 4}, Sizes{1, 6});
  uint64_t version = target.version();
  ASSERT_TRUE(targetTurned.copyFrom(far).ok()); // within the device
  EXPECT_GT(target.version(), version);
  EXPECT_EQ(valuesOf(*target.onHost()), valuesOf(host));
  EXPECT_EQ(valuesOf(*targetTurned.dense()->onHost()), valuesOf(turned));

  Tensor again = *Tensor::zeros(DType::F32, Sizes{4, 6}, there);
  ASSERT_TRUE(again.view(Sizes{6, 4}, Sizes{1, 6})->copyFrom(turned).ok());
  EXPECT_EQ(valuesOf(*again.onHost()), valuesOf(host)) << "to strided";
  Tensor back = *Tensor::zeros(DType::F32, Sizes{4, 6});
  Tensor backTurned = *back.view(Sizes{6, 4}, Sizes{1, 6});
  ASSERT_TRUE(backTurned.copyFrom(targetTurned).ok()); // both
  EXPECT_EQ(valuesOf(back), valuesOf(host));
  Tensor reversed = *back.view(Sizes{4, 6}, Sizes{-6, 1}, 18);
  ASSERT_TRUE(again.copyFrom(reversed).ok());
  EXPECT_EQ(again.at(0), 18);
}

TEST_F(DeviceTensor, OverlappingCopies) {
  Tensor far = *counted({8}).copyTo(there);
  Tensor low = *far.slice(0, 6), high = *far.slice(2, 8);
  ASSERT_TRUE(high.copyFrom(low).ok());
  EXPECT_EQ(valuesOf(far), (std::vector<float>{0, 1, 0, 1, 2, 3, 4, 5}));
  ASSERT_TRUE(far.copyFrom(far).ok());
  EXPECT_EQ(far.view(Sizes{4}, Sizes{2})->copyFrom(*far.slice(0, 4)).message(),
            "cannot copy between overlapping strided views");
}

TEST_F(DeviceTensor, IsCopiedBetweenDevices) {
  Tensor one = *counted({2, 3}).copyTo(there);
  Tensor other = *one.copyTo(FakeDevice::at(1).device());
  EXPECT_EQ(toString(other.device()), "cuda-emu:1");
  EXPECT_EQ(valuesOf(other), valuesOf(one));
  FakeDevice::at(1).finishAll();
}

TEST_F(DeviceTensor, IsFilledAndConverted) {
  Tensor far = *Tensor::empty(DType::F32, Sizes{2, 3}, there);
  ASSERT_TRUE(far.fill(2.5).ok());
  EXPECT_EQ(valuesOf(far), std::vector<float>(6, 2.5));
  Tensor column = *far.view(Sizes{2}, Sizes{3}, 1);
  ASSERT_TRUE(column.fill(7).ok());
  EXPECT_EQ(valuesOf(far), (std::vector<float>{2.5, 7, 2.5, 2.5, 7, 2.5}));
  ASSERT_TRUE(column.zero().ok());
  EXPECT_EQ(far.at(1), 0);
  Tensor integers = *far.to(DType::I32);
  EXPECT_EQ(integers.device(), there);
  EXPECT_EQ(integers.dtype(), DType::I32);
  EXPECT_EQ(integers.at(0), 2);
  ASSERT_TRUE(integers.fill(-3).ok());
  EXPECT_EQ(integers.at(5), -3);
  EXPECT_EQ(far.to(DType::F32)->storage(), far.storage());
}

TEST_F(DeviceTensor, StorageIsResizedAndFreed) {
  int64_t before = device.bytesInUse;
  {
    Tensor far = *counted({4}).copyTo(there);
    ASSERT_TRUE(far.resizeStorage(0).ok());
    EXPECT_EQ(device.bytesInUse, before);
    EXPECT_FALSE(far.isBacked());
    EXPECT_TRUE(std::isnan(far.at(0)));
    EXPECT_EQ(far.fill(1).message(),
              "expected a tensor with elements but its storage has 0 bytes");
    ASSERT_TRUE(far.resizeStorage(4).ok());
    ASSERT_TRUE(far.fill(3).ok());
    ASSERT_TRUE(far.resizeStorage(100).ok());
    EXPECT_EQ(valuesOf(far), std::vector<float>(4, 3)) << "kept what fits";
  }
  EXPECT_EQ(device.bytesInUse, before);
}

TEST_F(DeviceTensor, ForeignMemoryIsKnownToTheDevice) {
  std::vector<float> host(4);
  EXPECT_EQ(Tensor::wrapOn(there, host.data(), DType::F32, Sizes{4})
                .status()
                .message(),
            "expected memory of 'cuda-emu:0' but got a pointer that this "
            "device does not know");
  Tensor far = *counted({4}).copyTo(there);
  auto *data = const_cast<float *>(far.data<float>());
  EXPECT_FALSE(Tensor::wrapOn(there, data, DType::F32, Sizes{256})) << "ends";
  bool isReleased = false;
  {
    Tensor wrapped = *Tensor::wrapOn(there, data, DType::F32, Sizes{2, 2},
                                     Sizes{1, 2}, [&] { isReleased = true; });
    EXPECT_EQ(valuesOf(wrapped), (std::vector<float>{0, 2, 1, 3}));
    EXPECT_FALSE(wrapped.resizeStorage(8).ok());
  }
  EXPECT_TRUE(isReleased);
}

TEST_F(DeviceTensor, GoesThroughDLPack) {
  Tensor far = *counted({4}).copyTo(there);
  Stream producer = device.makeStream(), consumer = device.makeStream();
  StreamScope scope(there, producer);
  device.takeLog();
  DLManagedTensor *managed = *far.toDLPack(consumer);
  EXPECT_EQ(device.takeLog().size(), 1u) << "the consumer waits";
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLExtDev);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 0);
  EXPECT_EQ(managed->dl_tensor.data, far.data());
  StreamScope other(there, consumer);
  Tensor back = *Tensor::fromDLPack(managed);
  EXPECT_EQ(back.device(), there);
  EXPECT_EQ(back.data(), far.data());
  EXPECT_EQ(device.takeLog().size(), 0u);

  float host[4] = {};
  DLManagedTensor lie = *managed;
  lie.dl_tensor.data = host;
  EXPECT_EQ(Tensor::fromDLPack(&lie).status().message(),
            "expected memory of 'cuda-emu:0' but got a pointer that this "
            "device does not know");
}

TEST_F(DeviceTensor, OutOfMemory) {
  device.failAllocation = 0;
  EXPECT_EQ(Tensor::zeros(DType::F32, Sizes{1000}, there).status().message(),
            "out of memory: cannot allocate 4032 bytes; 0 are free");
  device.failAllocation = -1;
  EXPECT_TRUE(Tensor::zeros(DType::F32, Sizes{1000}, there).ok());
}

} // namespace
