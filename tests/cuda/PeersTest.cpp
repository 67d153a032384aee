//===- PeersTest.cpp - copies from one device to another ------------------===//
//
// Two devices of the layer over the driver emulator. Copies were done between
// two waits of the host, and without the contexts that they are of.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/Emulated.h"

using namespace tandem;
using namespace tandem::test;
using artifact::DType;
using runtime::Backend;
using runtime::Stream;

namespace {

class CudaPeers : public Emulated {
protected:
  void openTwo(const char *traits) {
    tandemEmulatorSetDevices(2);
    if (*traits) {
      EXPECT_EQ(tandemEmulatorSetTraits(traits), 0);
    }
    Result<cuda::Driver> driver = cuda::Driver::open(TANDEM_EMULATOR);
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    auto shared = std::make_shared<const cuda::Driver>(*driver);
    std::shared_ptr<Backend> *devices[] = {&device, &second};
    for (int i : {0, 1}) {
      auto opened =
          cuda::CudaDevice::open(shared, {runtime::DeviceKind::Cuda, i});
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      *devices[i] = *opened;
    }
  }
  void TearDown() override {
    second.reset();
    Emulated::TearDown();
  }
  float *allocateOn(Backend &on, int64_t count, Stream stream) {
    return static_cast<float *>(*on.allocate(count * 4, stream));
  }

  std::shared_ptr<Backend> second;
};

TEST_F(CudaPeers, CopiesAreInTheOrderOfBothStreams) {
  struct Row {
    const char *traits, *copy;
    bool waitsForHost;
  };
  const Row rows[] = {
      {"", ": copy between devices, ", false},
      {"no-pools", ": copy between devices, ", false},
      {"no-peers", ": copy between devices through the host, ", false},
      {"no-peer-copies", ": copy to host, ", true}};
  constexpr size_t count = (9 << 20) / 4 + 3;
  for (const Row &row : rows) {
    SCOPED_TRACE(row.traits);
    openTwo(row.traits);
    for (const char *policy : policies) {
      SCOPED_TRACE(policy);
      tandemEmulatorSetPolicy(policy);
      Stream s = stream(0), t = *second->side(1);
      float *a = allocateOn(*device, count, s),
            *b = allocateOn(*second, count, t);
      upload(a, range(count), s);
      expectOk(second->fill(DType::F32, b, -1, count, t));
      // What was queued before is slow, on either side.
      tandemEmulatorDelay(s, 1000000);
      tandemEmulatorDelay(t, 2000000);
      expectOk(device->add(DType::F32, a, a, a, 1, s));
      startLog();
      uint64_t syncs = tandemEmulatorGetCounts().syncs;
      expectOk(second->copyFrom(*device, a, s, b, count * 4, t));
      EXPECT_EQ(tandemEmulatorGetCounts().syncs == syncs, !row.waitsForHost);
      // What is queued next does not disturb it.
      expectOk(device->fill(DType::F32, a, -2, count, s));
      std::vector<float> got(count);
      expectOk(second->copy(got.data(), b, count * 4, t));
      EXPECT_EQ(got, range(count));
      EXPECT_NE(log().find(row.copy), std::string::npos) << log();
      tandemEmulatorSetLogging(0);
      // And back.
      expectOk(device->copyFrom(*second, b, t, a, count * 4, s));
      EXPECT_EQ(download(a, count, s), range(count));
      device->release(a, s, {});
      second->release(b, t, {});
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
    second.reset();
    close();
    tandemEmulatorReset();
  }
}

TEST_F(CudaPeers, ALostDeviceIsNamed) {
  openTwo("");
  Stream s = stream(0), t = *second->side(0);
  float *a = allocateOn(*device, 64, s), *b = allocateOn(*second, 64, t);
  upload(a, range(64), s);
  expectOk(second->fill(DType::F32, b, 1, 64, t));
  tandemEmulatorFail("lost:1");
  expectError(device->add(DType::F32, a, a, a, 64, s), "");
  EXPECT_TRUE(device->isLost());
  Status status = second->copyFrom(*device, a, s, b, 256, t);
  expectError(status, "copy from 'cuda:0' to 'cuda:1': device 'cuda:0' is "
                      "lost: ");
  // The other one goes on.
  EXPECT_FALSE(second->isLost());
  std::vector<float> got(64);
  expectOk(second->copy(got.data(), b, 256, t));
  EXPECT_EQ(got, std::vector<float>(64, 1));
  second->release(b, t, {});
  device->release(a, s, {});
  hasErrors = true; // the failure itself
}

TEST(EmulatorTraits, AreChecked) {
  for (const char *wrong : {"", "name=", "peers", "multiprocessors=0",
                            "multiprocessors=x", "no-peers,"})
    EXPECT_EQ(tandemEmulatorSetTraits(wrong), 1) << wrong;
  tandemEmulatorReset();
}

} // namespace
