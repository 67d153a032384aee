//===- CaptureTest.cpp - programs that a caller captures ------------------===//
//
// Rows S15 and S17 for programs: the caller records a graph with the driver's
// own functions, and the device layer queues programs into it.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/ProgramTest.h"

#include <thread>

using namespace tandem;
using namespace tandem::cuda::driver;
using namespace tandem::test;
using runtime::Stream;

namespace {

/// The caller's own use of the driver: captures.
class CudaCapture : public CudaCode {
protected:
  void SetUp() override {
    CudaCode::SetUp();
    Result<cuda::Driver> opened = cuda::Driver::open(TANDEM_EMULATOR);
    ASSERT_TRUE(opened.ok());
    driver = std::make_unique<cuda::Driver>(*opened);
    CUdevice number = 0;
    (*driver)->deviceGet(&number, 0);
    (*driver)->devicePrimaryCtxRetain(&context, number);
    (*driver)->ctxSetCurrent(context);
  }
  void TearDown() override {
    if (exec)
      (*driver)->graphExecDestroy(exec);
    (*driver)->ctxSetCurrent(nullptr);
    (*driver)->devicePrimaryCtxRelease(0);
    CudaCode::TearDown();
  }
  void begin(Stream s) {
    ASSERT_EQ((*driver)->streamBeginCapture(static_cast<CUstream>(s),
                                            CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    EXPECT_TRUE(device->isCapturing(s));
  }
  CUresult tryEnd(Stream s, CUgraph &graph) {
    return (*driver)->streamEndCapture(static_cast<CUstream>(s), &graph);
  }
  void end(Stream s) {
    CUgraph graph = nullptr;
    ASSERT_EQ(tryEnd(s, graph), CUDA_SUCCESS);
    ASSERT_EQ((*driver)->graphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    (*driver)->graphDestroy(graph);
    EXPECT_FALSE(device->isCapturing(s));
  }
  void replay(Stream s) {
    ASSERT_EQ((*driver)->graphLaunch(exec, static_cast<CUstream>(s)),
              CUDA_SUCCESS);
  }

  std::unique_ptr<cuda::Driver> driver;
  CUcontext context = nullptr;
  CUgraphExec exec = nullptr;
};

// S15: capture on a side stream after warm-up: no sync, no allocation, nothing
// on the default stream; three replays on new data.
TEST_F(CudaCapture, S15_CaptureOfPrograms) {
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    load();
    Stream s = stream(8), t = stream(9);
    run(evaluate, t, true); // warm-up, on another stream
    run(forward, t, true);
    expectOk(device->synchronize(t));
    upload(count, std::vector<float>(length, 0), s);
    expectOk(device->synchronize(s));
    TandemEmulatorCounts before = tandemEmulatorGetCounts();
    begin(s);
    startLog();
    run(forward, s, true);
    run(evaluate, s, true);
    // The commands themselves, and no graph inside of the graph.
    EXPECT_EQ(log().find("graph"), std::string::npos) << log();
    EXPECT_NE(log().find("kernel 'sum'"), std::string::npos) << log();
    end(s);
    TandemEmulatorCounts after = tandemEmulatorGetCounts();
    EXPECT_EQ(after.syncs, before.syncs);
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.graphLaunches, before.graphLaunches);
    EXPECT_EQ(after.hostAllocations, before.hostAllocations);
    EXPECT_EQ(after.defaultStreamOperations, before.defaultStreamOperations);
    for (int step = 1; step <= 3; ++step) {
      auto value = static_cast<float>(10 * step);
      upload(x, range(length, value), s);
      upload(y, range(length, -value), s);
      replay(s);
      EXPECT_EQ(download(out, length, s), evaluated(value, -value));
      EXPECT_EQ(download(count, length, s),
                std::vector<float>(length, static_cast<float>(step)));
    }
    // And uncaptured runs in between are right.
    run(forward, s, true);
    EXPECT_EQ(download(out, length, s), forwarded(30));
    (*driver)->graphExecDestroy(exec);
    exec = nullptr;
    unload();
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
}

// S17: what is forbidden while a graph is recorded is an error, ends the
// capture, and the next step is right.
TEST_F(CudaCapture, S17_ForbiddenActs) {
  load();
  Stream s = stream(8);
  run(evaluate, s, true);
  expectOk(device->synchronize(s));
  std::vector<float> host(length);
  using Act = std::function<Status()>;
  const std::pair<const char *, Act> acts[] = {
      {"to wait on the host", [&] { return device->synchronize(s); }},
      {"for 123456789 bytes of new memory",
       [&] { return device->allocate(123456789, s).status(); }},
      {"to copy host memory that is not pinned",
       [&] { return device->copy(x, host.data(), 256, s); }},
      {"to copy host memory that is not pinned",
       [&] { return device->copy(host.data(), x, 256, s); }}};
  for (const auto &[what, act] : acts) {
    SCOPED_TRACE(what);
    begin(s);
    run(evaluate, s, true);
    Status status = act();
    expectError(status, "a stream that records a graph must not be asked " +
                            std::string(what));
    expectError(status, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
    CUgraph graph = nullptr;
    EXPECT_EQ(tryEnd(s, graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_FALSE(device->isCapturing(s));
    EXPECT_FALSE(device->isLost());
    run(evaluate, s, true);
    EXPECT_EQ(download(out, length, s), evaluated());
  }
  // Pinned memory may be copied: the graph reads it at each replay.
  auto *pinned = static_cast<float *>(*device->allocatePinned(256));
  std::fill_n(pinned, length, 3.0f);
  begin(s);
  expectOk(device->copy(x, pinned, 256, s));
  end(s);
  std::fill_n(pinned, length, 4.0f);
  replay(s);
  EXPECT_EQ(download(x, length, s), std::vector<float>(length, 4));
  device->releasePinned(pinned);
}

// What is given back while a graph that uses it is recorded serves that capture
// alone; so does what is allocated in it, also when it is given back later.
TEST_F(CudaCapture, MemoryOfACaptureIsNotUsedAnew) {
  using artifact::DType;
  load();
  Stream s = stream(8), t = stream(9);
  float *before = allocate(length, s), *kept = allocate(length, s),
        *more = allocate(length, s);
  upload(before, range(length), s);
  float *elsewhere = allocate(16 * length, s);
  device->release(kept, s, {});
  device->release(more, s, {});
  expectOk(device->synchronize(s));
  uint64_t asked = tandemEmulatorGetCounts().allocations;
  begin(s);
  expectOk(device->copy(out, before, 256, s));
  device->release(before, s, {});
  float *first = allocate(length, s);
  EXPECT_EQ(first, before); // in the same capture, in its order
  expectOk(device->fill(DType::F32, first, 2, length, s));
  // Used on another stream of the capture: reused when that one is done.
  expectOk(device->wait(t, s));
  expectOk(device->add(DType::F32, out, out, first, length, t));
  const Stream others[] = {t};
  device->release(first, s, others);
  float *second = allocate(length, s), *third = allocate(length, s);
  EXPECT_TRUE(second == kept || second == more);
  EXPECT_TRUE(third == kept || third == more);
  float *again = allocate(length, s);
  EXPECT_EQ(again, first);
  expectOk(device->fill(DType::F32, again, -5, length, s));
  expectOk(device->fill(DType::F32, second, -5, length, s));
  device->release(third, s, {});
  expectOk(device->wait(s, t));
  // Nothing in the capture can wait for a stream outside of it.
  const Stream outside[] = {stream(10)};
  device->release(elsewhere, s, outside);
  expectError(device->allocate(16 * length, s).status(), "of new memory");
  CUgraph graph = nullptr;
  EXPECT_EQ(tryEnd(s, graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  // The same again, to its end.
  begin(s);
  expectOk(device->fill(DType::F32, again, -5, length, s));
  expectOk(device->fill(DType::F32, second, -5, length, s));
  end(s);
  EXPECT_EQ(tandemEmulatorGetCounts().allocations, asked);
  device->release(second, s, {});
  device->release(again, s, {});
  std::vector<float *> later;
  for (int i = 0; i < 4; ++i) {
    later.push_back(allocate(length, s));
    for (float *its : {before, kept, more})
      EXPECT_NE(later.back(), its);
    upload(later.back(), std::vector<float>(length, 9), s);
  }
  replay(s);
  EXPECT_EQ(download(later[0], length, s), std::vector<float>(length, 9));
  for (float *data : later)
    device->release(data, s, {});
}

// Another thread's work beside a capture neither disturbs it nor is refused.
TEST_F(CudaCapture, OtherStreamsMayAllocateBesideACapture) {
  load();
  Stream s = stream(8), t = stream(9);
  run(evaluate, s, true);
  begin(s);
  run(evaluate, s, true);
  float *data = allocate(1000, t);
  upload(data, range(length), t);
  EXPECT_EQ(download(data, length, t), range(length));
  device->release(data, t, {});
  end(s);
  replay(s);
  EXPECT_EQ(download(out, length, s), evaluated());
}

// Near the limit what is kept is given back. What is waited for are those that
// used it: to wait for the device ended the captures of others.
TEST_F(CudaCapture, MemoryIsGivenBackBesideACapture) {
  constexpr int64_t mib = 1 << 20;
  for (const char *traits : {"name=any", "no-pools"}) {
    SCOPED_TRACE(traits);
    unload();
    close();
    tandemEmulatorSetTraits(traits);
    open();
    for (const char *policy : policies) {
      SCOPED_TRACE(policy);
      tandemEmulatorSetPolicy(policy);
      load();
      Stream s = stream(8), t = stream(9), u = stream(10), v = stream(11);
      run(evaluate, s, true);
      float *kept = allocate(mib, u);
      tandemEmulatorDelay(v, 1'000'000);
      expectOk(device->fill(artifact::DType::F32, kept, 1, mib, u));
      expectOk(device->wait(v, u));
      expectOk(device->wait(v, s)); // which reads x
      expectOk(device->copy(x, kept, 256, v));
      const Stream others[] = {v};
      device->release(kept, u, others); // used on v as well
      int64_t used = gpu().memoryUsage().used;
      ASSERT_GE(gpu().memoryUsage().kept, 4 * mib);
      begin(s);
      run(evaluate, s, true);
      std::thread([&] {
        expectOk(device->limitMemory(used + 5 * mib));
        float *more = allocate(mib, t); // 4 MiB: those of u
        expectOk(device->fill(artifact::DType::F32, more, 2, mib, t));
        device->release(more, t, {});
        expectOk(device->limitMemory(1));
        EXPECT_EQ(gpu().memoryUsage().kept, 0);
        expectOk(device->limitMemory(0));
      }).join();
      end(s);
      EXPECT_EQ(download(x, length, v), std::vector<float>(length, 1));
      replay(s);
      (*driver)->graphExecDestroy(exec);
      exec = nullptr;
      std::vector<float> expected = evaluated();
      for (int64_t i = 0; i < length; ++i)
        expected[i] += 2 * (1 - float(i)); // x was made 1
      EXPECT_EQ(download(out, length, s), expected);
      unload();
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
  }
}

// Pinned memory may end beside a capture of another thread.
TEST_F(CudaCapture, PinnedMemoryEndsBesideACapture) {
  load();
  Stream s = stream(8);
  void *pinned = *device->allocatePinned(256);
  begin(s);
  std::thread([&] { device->releasePinned(pinned); }).join();
  expectOk(device->fill(artifact::DType::F32, x, 1, length, s));
  end(s);
}

// Memory that was used on the default stream may be given back while a stream
// is captured that it would have to wait for, and is there again later.
TEST_F(CudaCapture, TheDefaultStreamGivesBackBesideACapture) {
  load();
  CUstream blocking = nullptr;
  ASSERT_EQ((*driver)->streamCreate(&blocking, CU_STREAM_DEFAULT),
            CUDA_SUCCESS);
  float *data = allocate(1000), *next = allocate(1000);
  begin(blocking);
  device->release(data, nullptr, {});
  expectOk(device->limitMemory(1)); // nobody can say when it is done
  EXPECT_GT(gpu().memoryUsage().kept, 0);
  expectOk(device->fill(artifact::DType::F32, x, 1, length, blocking));
  end(blocking);
  device->release(next, nullptr, {});
  expectOk(device->limitMemory(1));
  EXPECT_EQ(gpu().memoryUsage().kept, 0);
  expectOk(device->limitMemory(0));
  (*driver)->streamDestroy(blocking);
}

// Code ends when its runs have, and beside a capture; which waiting for the
// whole device would have ended.
TEST_F(CudaCapture, CodeEndsBesideACapture) {
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    load();
    Stream s = stream(8), t = stream(9);
    for (bool useGraph : {false, true}) {
      if (!code)
        code = std::move(*device->load(programs()));
      tandemEmulatorDelay(t, 1'000'000);
      expectOk(device->fill(artifact::DType::F32, out, -1, length, t));
      run(forward, t, useGraph);
      begin(s);
      std::thread([&] { code.reset(); }).join();
      expectOk(device->fill(artifact::DType::F32, y, 3, length, s));
      end(s);
      (*driver)->graphExecDestroy(exec);
      exec = nullptr;
      EXPECT_EQ(download(out, length, t), forwarded());
    }
    unload();
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
}

} // namespace
