//===- StreamHandlesTest.cpp - streams whose handles come again -----------===//
//
// A caller destroys a stream whose work goes on, and makes another one, which
// has the same handle. What was said of the first stream is not said of the
// second one.
//
//===----------------------------------------------------------------------===//
#include "cuda/Handles.h"
#include "tests/cuda/Emulated.h"

using namespace tandem;
using namespace tandem::cuda::driver;
using namespace tandem::test;
using artifact::DType;
using runtime::Stream;

namespace {

class StreamHandles : public Emulated {
protected:
  void SetUp() override {
    Emulated::SetUp();
    open();
    Result<cuda::Driver> opened = cuda::Driver::open(TANDEM_EMULATOR);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    driver = std::make_unique<cuda::Driver>(*opened);
    ASSERT_EQ((*driver)->devicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ((*driver)->ctxSetCurrent(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    for (CUstream one : made)
      (*driver)->streamDestroy(one);
    made.clear();
    (*driver)->ctxSetCurrent(nullptr);
    (*driver)->devicePrimaryCtxRelease(0);
    Emulated::TearDown();
  }

  CUstream create() {
    CUstream one = nullptr;
    EXPECT_EQ((*driver)->streamCreate(&one, CU_STREAM_NON_BLOCKING),
              CUDA_SUCCESS);
    made.push_back(one);
    return one;
  }
  /// Destroys a stream and returns another one that has its handle.
  Stream again(Stream old) {
    EXPECT_EQ((*driver)->streamDestroy(cuda::cu(old)), CUDA_SUCCESS);
    std::erase(made, old);
    for (int i = 0; i < 10000; ++i)
      if (CUstream one = create(); one == old)
        return one;
    ADD_FAILURE() << "no stream has the handle of one that was destroyed";
    return old;
  }

  std::unique_ptr<cuda::Driver> driver;
  CUcontext context = nullptr;
  std::vector<CUstream> made;
};

// What the old stream kept is the new one's behind the old one's work.
TEST_F(StreamHandles, KeptMemoryWaitsForTheOldStream) {
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    Stream home = stream(0), s = create();
    float *to = allocate(64, home), *data = allocate(64, s);
    upload(data, range(64), s);
    expectOk(device->wait(s, home));
    tandemEmulatorDelay(s, 1'000'000);
    expectOk(device->copy(to, data, 256, s));
    device->release(data, s, {});
    s = again(s);
    uint64_t asked = tandemEmulatorGetCounts().allocations;
    float *reused = allocate(64, s);
    EXPECT_EQ(reused, data);
    EXPECT_EQ(tandemEmulatorGetCounts().allocations, asked);
    expectOk(device->fill(DType::F32, reused, -1, 64, s));
    expectOk(device->wait(home, s));
    EXPECT_EQ(download(to, 64, home), range(64));
    EXPECT_EQ(download(reused, 64, s), std::vector<float>(64, -1));
    device->release(reused, s, {});
    device->release(to, home, {});
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
}

// A capture cannot wait for work outside of it: it takes only what is done.
TEST_F(StreamHandles, ACaptureTakesOnlyWhatIsDone) {
  tandemEmulatorSetPolicy("lazy");
  Stream s = create();
  for (bool isDone : {false, true}) {
    float *data = allocate(64, s);
    expectOk(device->fill(DType::F32, data, 1, 64, s));
    device->release(data, s, {});
    if (isDone) {
      expectOk(device->synchronize(s));
    }
    s = again(s);
    ASSERT_EQ((*driver)->streamBeginCapture(cuda::cu(s),
                                            CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    Result<void *> taken = device->allocate(256, s);
    EXPECT_EQ(taken.ok(), isDone) << taken.status().message();
    if (taken) {
      EXPECT_EQ(*taken, data);
      device->release(*taken, s, {});
    }
    CUgraph graph = nullptr;
    EXPECT_EQ((*driver)->streamEndCapture(cuda::cu(s), &graph) == CUDA_SUCCESS,
              isDone);
    if (graph)
      (*driver)->graphDestroy(graph);
  }
}

// The end of registered memory waits for the copies of the old stream, too.
TEST_F(StreamHandles, RegisteredMemoryWaitsForTheOldStream) {
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    Stream home = stream(0), s = create();
    float *a = allocate(64, home), *b = allocate(64, home);
    expectOk(device->synchronize(home));
    std::vector<float> host = range(64);
    expectOk(device->registerHost(host.data(), 256));
    tandemEmulatorDelay(s, 1'000'000);
    expectOk(device->copy(a, host.data(), 256, s));
    s = again(s);
    expectOk(device->copy(b, host.data(), 256, s));
    device->unregisterHost(host.data());
    host.assign(64, -1);
    EXPECT_EQ(download(a, 64, home), range(64));
    EXPECT_EQ(download(b, 64, home), range(64));
    device->release(a, home, {});
    device->release(b, home, {});
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
}

// Streams that come and go leave no events behind, while the memory stays.
TEST_F(StreamHandles, RegisteredMemoryForgetsWhatIsDone) {
  Stream home = stream(0);
  float *a = allocate(64, home);
  expectOk(device->synchronize(home));
  std::vector<float> host = range(64);
  expectOk(device->registerHost(host.data(), 256));
  Stream s = create();
  size_t events = 0;
  for (int i = 0; i < 20; ++i) {
    expectOk(device->copy(a, host.data(), 256, s));
    expectOk(device->synchronize(s));
    s = again(s);
    if (i == 4)
      events = tandemEmulatorLiveHandles("event");
  }
  EXPECT_EQ(tandemEmulatorLiveHandles("event"), events);
  device->unregisterHost(host.data());
  device->release(a, home, {});
}

} // namespace
