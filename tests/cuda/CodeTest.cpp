//===- CodeTest.cpp - programs on a device --------------------------------===//
//
// Small programs (Emulated.h) through the stream path, the graph path and
// captures of the caller, over the driver emulator.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/Emulated.h"

using namespace tandem;
using namespace tandem::cuda::driver;
using namespace tandem::test;
using runtime::Action;
using runtime::Stream;

namespace {

constexpr size_t evaluate = 0, forward = 1;

std::vector<Action> all(size_t launches) {
  return std::vector<Action>(launches, runtime::runKernel);
}

class CudaCode : public Emulated {
protected:
  void SetUp() override {
    Emulated::SetUp();
    open();
  }
  void TearDown() override {
    unload();
    Emulated::TearDown();
  }

  void load(const artifact::ArtifactReader &reader = programs()) {
    auto loaded = device->load(reader);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    code = std::move(*loaded);
    home = stream(6);
    x = allocate(length, home);
    y = allocate(length, home);
    out = allocate(length, home);
    count = allocate(length, home);
    arena = allocate(2 * length, home);
    upload(x, range(length), home);
    upload(y, range(length, 100), home);
    upload(count, std::vector<float>(length, 0), home);
    upload(out, std::vector<float>(length, -1), home);
    expectOk(device->synchronize(home));
  }

  void unload() {
    code.reset();
    for (float *data : {x, y, out, count, arena})
      if (data)
        device->release(data, home, {});
    x = y = out = count = arena = nullptr;
  }

  Status tryRun(size_t program, Stream stream, bool useGraph,
                std::vector<Action> actions = {}) {
    std::vector<void *> buffers = {x, y, out, arena, arena + length};
    if (program == forward)
      buffers = {x, count, out, arena, arena + length, nullptr};
    if (actions.empty())
      actions = all(program == evaluate ? 3 : 4);
    return code->run({program, buffers, actions, stream, useGraph});
  }
  void run(size_t program, Stream stream, bool useGraph,
           std::vector<Action> actions = {}) {
    expectOk(tryRun(program, stream, useGraph, std::move(actions)));
  }

  std::unique_ptr<runtime::DeviceCode> code;
  Stream home = nullptr;
  float *x = nullptr, *y = nullptr, *out = nullptr, *count = nullptr,
        *arena = nullptr;
};

/// 2 x + 3 y of the ranges that `load` writes.
std::vector<float> evaluated(float x = 0, float y = 100) {
  std::vector<float> values(length);
  for (int64_t i = 0; i < length; ++i)
    values[i] = 2 * (x + float(i)) + 3 * (y + float(i));
  return values;
}
std::vector<float> forwarded(float x = 0) {
  std::vector<float> values(length);
  for (int64_t i = 0; i < length; ++i)
    values[i] = 2 * (x + float(i) + 1) + 5;
  return values;
}

TEST_F(CudaCode, StreamsAndGraphsGiveTheSame) {
  for (const char *policy : policies) {
    for (bool useGraph : {false, true}) {
      SCOPED_TRACE(std::string(policy) + (useGraph ? ", graph" : ", streams"));
      tandemEmulatorSetPolicy(policy);
      load();
      for (Stream s : {stream(8), home, Stream()}) {
        upload(out, std::vector<float>(length, -1), s);
        run(evaluate, s, useGraph);
        EXPECT_EQ(download(out, length, s), evaluated());
      }
      upload(count, std::vector<float>(length, 0), home);
      for (int step = 1; step <= 3; ++step) {
        run(forward, home, useGraph);
        EXPECT_EQ(download(out, length, home), forwarded());
        EXPECT_EQ(download(count, length, home),
                  std::vector<float>(length, static_cast<float>(step)));
      }
      unload();
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
  }
}

TEST_F(CudaCode, AsksTheDriverForNothingTheSecondTime) {
  load();
  Stream s = stream(8);
  for (bool useGraph : {false, true}) {
    run(evaluate, s, useGraph);
    run(forward, s, useGraph);
    TandemEmulatorCounts before = tandemEmulatorGetCounts();
    size_t events = tandemEmulatorLiveHandles("event");
    size_t streams = tandemEmulatorLiveHandles("stream");
    run(evaluate, s, useGraph);
    run(forward, s, useGraph);
    TandemEmulatorCounts after = tandemEmulatorGetCounts();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.syncs, before.syncs);
    EXPECT_EQ(after.graphInstantiations, before.graphInstantiations);
    EXPECT_EQ(after.graphLaunches, before.graphLaunches + (useGraph ? 2 : 0));
    EXPECT_EQ(after.defaultStreamOperations, before.defaultStreamOperations);
    EXPECT_EQ(tandemEmulatorLiveHandles("event"), events);
    EXPECT_EQ(tandemEmulatorLiveHandles("stream"), streams);
  }
}

// S13: the streams of a program wait for the caller's at entry, it for them at
// exit; a program of one stream has no events.
TEST_F(CudaCode, S13_StreamsOfAProgram) {
  load();
  Stream s = stream(8);
  run(evaluate, s, false);
  run(forward, s, false);
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  run(forward, s, false);
  EXPECT_EQ(tandemEmulatorGetCounts().eventRecords, before.eventRecords);
  EXPECT_EQ(tandemEmulatorGetCounts().eventWaits, before.eventWaits);
  startLog();
  run(evaluate, s, false);
  std::string mine = tandemEmulatorStreamName(s),
              side = tandemEmulatorStreamName(stream(0));
  std::string lines = log();
  std::vector<size_t> order = {
      lines.find(mine + ": record"),      lines.find(mine + ": kernel"),
      lines.find(side + ": wait"),        lines.find(side + ": kernel"),
      lines.find(side + ": record"),      lines.rfind(mine + ": wait"),
      lines.find(mine + ": kernel 'sum'")};
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << lines;
  EXPECT_NE(order.back(), std::string::npos) << lines;
  // Inputs of a delayed caller, and results for the caller, under every policy.
  for (const char *policy : policies) {
    tandemEmulatorSetPolicy(policy);
    tandemEmulatorDelay(s, 1000000);
    upload(y, range(length, 7), s);
    run(evaluate, s, false);
    EXPECT_EQ(download(out, length, s), evaluated(0, 7)) << policy;
  }
}

// Runs on two streams that nothing orders have scratch memory of their own.
TEST_F(CudaCode, ScratchMemoryBelongsToAStream) {
  load();
  Stream s = stream(8), t = stream(9);
  float *x2 = allocate(length, s), *out2 = allocate(length, s),
        *count2 = allocate(length, s), *arena2 = allocate(2 * length, s);
  upload(x2, range(length, 30), s);
  upload(count2, range(length), s);
  for (const char *policy : policies) {
    SCOPED_TRACE(policy);
    tandemEmulatorSetPolicy(policy);
    for (bool useGraph : {false, true}) {
      run(forward, s, useGraph);
      expectOk(device->wait(t, s));
      run(forward, t, useGraph);
      std::swap(x, x2), std::swap(out, out2);
      std::swap(count, count2), std::swap(arena, arena2);
      run(forward, s, useGraph);
      EXPECT_EQ(download(out, length, s), forwarded(30));
      std::swap(x, x2), std::swap(out, out2);
      std::swap(count, count2), std::swap(arena, arena2);
      EXPECT_EQ(download(out, length, t), forwarded());
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
  }
  for (float *data : {x2, out2, count2, arena2})
    device->release(data, s, {});
}

// S13: the caller's stream waits for a stream that ends last.
TEST_F(CudaCode, S13_ExitOfAStreamThatNobodyAwaits) {
  load();
  Stream s = stream(8);
  for (const char *policy : policies) {
    tandemEmulatorSetPolicy(policy);
    upload(y, range(length, 1), s);
    run(evaluate, s, false,
        {runtime::runKernel, runtime::runKernel, runtime::skipLaunch});
    EXPECT_EQ(download(arena + length, 1, s), std::vector<float>{3}) << policy;
  }
}

// S01: a delay on one stream of the program does not hold up the other.
TEST_F(CudaCode, S01_StreamsRunBesideEachOther) {
  load();
  Stream s = stream(8);
  run(evaluate, s, false);
  expectOk(device->synchronize(s));
  tandemEmulatorSetPolicy("lazy");
  uint64_t before = tandemEmulatorHostTime();
  tandemEmulatorDelayNext(stream(0), 1000000); // its product
  run(evaluate, s, false);
  tandemEmulatorDelay(s, 1000000);
  expectOk(device->synchronize(s));
  EXPECT_GE(tandemEmulatorHostTime() - before, 2000000u); // sum waits for it
  EXPECT_LT(tandemEmulatorHostTime() - before, 2500000u);
  EXPECT_EQ(download(out, length, s), evaluated());
}

TEST_F(CudaCode, GraphsFollowChangedAddresses) {
  load();
  Stream s = stream(8);
  run(evaluate, s, true);
  uint64_t made = tandemEmulatorGetCounts().graphInstantiations;
  float *first = x, *other = allocate(length, s);
  upload(other, range(length, 50), s);
  x = other;
  run(evaluate, s, true);
  EXPECT_EQ(download(out, length, s), evaluated(50));
  x = first;
  run(evaluate, s, true);
  EXPECT_EQ(download(out, length, s), evaluated());
  EXPECT_EQ(tandemEmulatorGetCounts().graphInstantiations, made);
  // A launch that is still queued keeps the addresses that it had.
  tandemEmulatorSetPolicy("lazy");
  float *out1 = out, *out2 = allocate(length, s);
  run(evaluate, s, true);
  out = out2;
  x = other;
  run(evaluate, s, true);
  EXPECT_EQ(download(out1, length, s), evaluated());
  EXPECT_EQ(download(out2, length, s), evaluated(50));
  out = out1;
  x = first;
  device->release(other, s, {});
  device->release(out2, s, {});
}

TEST_F(CudaCode, ActionsAndOverlapsHavePlansOfTheirOwn) {
  load();
  Stream s = stream(8);
  using namespace runtime;
  for (bool useGraph : {false, true}) {
    SCOPED_TRACE(useGraph);
    // out = arena 0 (position 0 of the sum) = 2 x.
    run(evaluate, s, useGraph, {runKernel, skipLaunch, 0});
    std::vector<float> twice = range(length);
    for (float &value : twice)
      value *= 2;
    EXPECT_EQ(download(out, length, s), twice);
    run(evaluate, s, useGraph, {skipLaunch, skipLaunch, writeZeros});
    EXPECT_EQ(download(out, length, s), std::vector<float>(length, 0));
    uint64_t made = tandemEmulatorGetCounts().graphInstantiations;
    run(evaluate, s, useGraph);
    run(evaluate, s, useGraph, {runKernel, skipLaunch, 0});
    run(evaluate, s, useGraph);
    EXPECT_EQ(download(out, length, s), evaluated());
    // At most the one for all kernels is new.
    EXPECT_LE(tandemEmulatorGetCounts().graphInstantiations, made + 1);
    // The result over y: the sum must run after both.
    float *before = out;
    out = y;
    run(evaluate, s, useGraph);
    EXPECT_EQ(download(y, length, s), evaluated());
    out = before;
    upload(y, range(length, 100), s);
  }
}

TEST_F(CudaCode, ManyPlansAreNotKeptForever) {
  load();
  Stream s = stream(8);
  float *both = allocate(2 * length, s);
  float *mine = y, *target = out;
  for (int shift = 0; shift < 40; ++shift) {
    y = both + shift; // overlaps with out, differently each time
    out = both;
    upload(y, range(length, 100), s);
    run(evaluate, s, true);
    EXPECT_EQ(download(out, length, s), evaluated());
  }
  y = mine;
  out = target;
  EXPECT_LE(tandemEmulatorLiveHandles("exec"), 16u);
  device->release(both, s, {});
}

TEST_F(CudaCode, WrongArchitecture) {
  auto reader = programs(
      [](artifact::Manifest &manifest) { manifest.target.arch = "sm_100"; });
  Status status = device->load(reader).status();
  EXPECT_EQ(status.code(), Code::NoDevice);
  expectError(status, "cannot load 'small' on device 'cuda:0': expected a "
                      "device for 'sm_100' code but got ");
  expectError(status, "sm_90");
  // Code for one architecture alone.
  for (const char *arch : {"sm_80a", "sm_100a", "what"})
    expectError(device
                    ->load(programs([&](artifact::Manifest &manifest) {
                      manifest.target.arch = arch;
                    }))
                    .status(),
                "expected a device for '" + std::string(arch) + "'");
}

TEST_F(CudaCode, CodeThatCannotBeLoaded) {
  auto with = [&](const std::string &ptx) {
    return device
        ->load(programs({},
                        [&](artifact::ArtifactWriter &writer) {
                          writer.addCode("ptx", ptx);
                        }))
        .status();
  };
  expectError(with(std::string("hello") + '\0'),
              "cannot load the PTX: cuModuleLoadDataEx failed: "
              "CUDA_ERROR_INVALID_IMAGE");
  expectError(with(".version 7.0\n.target sm_80\n.entry unknown()" +
                   std::string(1, '\0')),
              "the driver's compiler says: ");
  expectError(with("no zero"), "the artifact's PTX does not end with a zero");
  // All kernels that are missing are named.
  expectError(
      with(".version 7.0\n.target sm_80\n.entry twice()" +
           std::string(1, '\0')),
      "kernel 'thrice': cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND");
}

TEST_F(CudaCode, SharedMemoryAbove48KiB) {
  load(programs([](artifact::Manifest &manifest) {
    manifest.kernels[0].sharedBytes = 100000;
  }));
  run(evaluate, home, false);
  run(evaluate, home, true);
  EXPECT_EQ(download(out, length, home), evaluated());
}

TEST_F(CudaCode, OutOfMemoryAtLoadLeaksNothing) {
  uint64_t before = tandemEmulatorGetCounts().allocations;
  load();
  uint64_t own = tandemEmulatorGetCounts().allocations - before;
  unload();
  int64_t used = gpu().memoryUsage().used;
  // Empty what is kept, so that each load asks the driver.
  for (uint64_t n = 1; n < own; ++n) {
    close();
    open();
    tandemEmulatorFail(("alloc:" + std::to_string(n)).c_str());
    auto loaded = device->load(programs());
    if (loaded.ok())
      break; // the rest were the test's own
    expectError(loaded.status(), "cannot load 'small' on device 'cuda:0': ");
    expectError(loaded.status(), " of 'small': out of memory on device "
                                 "'cuda:0': expected ");
    EXPECT_EQ(gpu().memoryUsage().used, used);
    EXPECT_FALSE(device->isLost());
  }
  tandemEmulatorFail(nullptr);
  load();
  run(evaluate, home, true);
  EXPECT_EQ(download(out, length, home), evaluated());
}

TEST_F(CudaCode, AFailedLaunchIsNamed) {
  load();
  Stream s = stream(8);
  for (int round = 0; round < 2; ++round) {
    tandemEmulatorFail("refuse:2");
    Status status = tryRun(evaluate, s, false);
    expectError(status, "launch 1 ('thrice') of program 'evaluate': "
                        "cuLaunchKernel failed: "
                        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    EXPECT_FALSE(device->isLost());
    // What comes next is right.
    run(evaluate, s, false);
    EXPECT_EQ(download(out, length, s), evaluated());
  }
}

TEST_F(CudaCode, ALostDevice) {
  load();
  Stream s = stream(8);
  run(evaluate, s, true);
  tandemEmulatorFail("lost:2");
  Status status = tryRun(evaluate, s, false);
  if (status.ok())
    status = device->synchronize(s);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(device->isLost());
  expectError(tryRun(evaluate, s, true), "device 'cuda:0' is lost: ");
  expectError(tryRun(evaluate, s, false), "device 'cuda:0' is lost: ");
  hasErrors = true;
}

TEST_F(CudaCode, BuffersThatAreMissing) {
  load();
  float *mine = std::exchange(x, nullptr);
  expectError(tryRun(evaluate, home, false),
              "program 'evaluate': expected an address of buffer 0 but got "
              "null");
  // A skipped launch needs none.
  using namespace runtime;
  run(evaluate, home, false, {skipLaunch, runKernel, writeZeros});
  x = mine;
  run(evaluate, home, false);
  EXPECT_EQ(download(out, length, home), evaluated());
}

class CudaEmulator : public Emulated {
protected:
  void SetUp() override {
    Emulated::SetUp();
    Result<cuda::Driver> driver = cuda::Driver::open(TANDEM_EMULATOR);
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    auto opened =
        cuda::CudaDevice::open(std::make_shared<const cuda::Driver>(*driver),
                               {runtime::DeviceKind::CudaEmu, 0});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    device = *opened;
  }
};

// The emulator's devices need the emulation image, and say so.
TEST_F(CudaEmulator, WantsAnImage) {
  Status status = device->load(programs()).status();
  EXPECT_EQ(status.code(), Code::NoDevice);
  expectError(status, "expected the section 'emulation.cuda'");
}

// They say what the emulator found, also where the numbers are right.
TEST_F(CudaEmulator, ReportsRaces) {
  Stream a = stream(0), b = stream(1);
  float *data = allocate(64, a);
  expectOk(device->zero(data, 256, a));
  expectOk(device->wait(b, a));
  expectOk(device->synchronize(b));
  expectOk(device->zero(data, 256, a));
  expectOk(device->zero(data, 256, b)); // nobody waits
  expectError(device->synchronize(b), "device 'cuda-emu:0': the emulator "
                                      "found: ");
  device->release(data, a, {});
  hasErrors = true;
}

TEST_F(CudaCode, ProfilesEveryCommand) {
  load();
  Stream s = stream(8);
  expectError(device->stopProfile().status(), "was started");
  expectOk(device->startProfile());
  device->beginPhase("step \"1\"");
  run(evaluate, s, true);
  run(forward, s, true);
  expectOk(device->synchronize(s));
  device->endPhase();
  EXPECT_EQ(tandemEmulatorGetCounts().graphLaunches, 0u);
  Result<std::string> trace = device->stopProfile();
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  for (const char *part :
       {"\"traceEvents\"", "\"twice\"", "\"scratched\"", "\"stream 1\"",
        "\"the caller's stream\"", "\"step \\\"1\\\"\"", "\"dur\""})
    EXPECT_NE(trace->find(part), std::string::npos) << part << *trace;
  // Then graphs again, and right numbers.
  run(evaluate, s, true);
  EXPECT_EQ(tandemEmulatorGetCounts().graphLaunches, 1u);
  EXPECT_EQ(download(out, length, s), evaluated());
}

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

} // namespace
