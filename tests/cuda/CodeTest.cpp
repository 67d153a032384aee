//===- CodeTest.cpp - programs on a device --------------------------------===//
//
// Small programs (Emulated.h) through the stream path and the graph path, over
// the driver emulator.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/ProgramTest.h"

using namespace tandem;
using namespace tandem::test;
using runtime::Stream;

namespace {

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

// A graph is brought to the device once, when it is made, beside what the
// caller's stream has to do; its launches wait for that and for nothing else.
TEST_F(CudaCode, GraphsAreUploadedBeforeTheirFirstLaunch) {
  tandemEmulatorSetPolicy("lazy");
  load();
  Stream s = stream(8);
  uint64_t uploads = tandemEmulatorGetCounts().graphUploads;
  tandemEmulatorDelay(s, 100000);
  startLog();
  run(evaluate, s, true);
  std::string lines = log(), mine = tandemEmulatorStreamName(s);
  size_t upload = lines.find(": upload of a graph, 3 nodes"),
         launch = lines.find("\n" + mine + ": graph launch, 3 nodes");
  EXPECT_LT(upload, lines.find("\n" + mine + ": wait", upload)) << lines;
  EXPECT_LT(lines.find("\n" + mine + ": wait", upload), launch) << lines;
  EXPECT_NE(launch, std::string::npos) << lines;
  EXPECT_EQ(lines.find(mine + ": upload"), std::string::npos) << lines;
  EXPECT_EQ(download(out, length, s), evaluated());
  run(evaluate, s, true);
  EXPECT_EQ(tandemEmulatorGetCounts().graphUploads, uploads + 1);
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

/// An artifact with the programs for each architecture; with a cubin where the
/// name ends in '!'.
artifact::ArtifactReader variantsOf(const std::vector<std::string> &archs) {
  artifact::ArtifactWriter whole;
  for (size_t i = 0; i < archs.size(); ++i) {
    bool hasCubin = archs[i].ends_with('!');
    std::string arch = archs[i].substr(0, archs[i].size() - hasCubin);
    artifact::ArtifactReader one = programs(
        [&](artifact::Manifest &manifest) { manifest.target.arch = arch; });
    artifact::ArtifactWriter writer;
    writer.setManifest(one.manifest());
    writer.addConstant(one.constants());
    auto ptx = one.code("ptx");
    writer.addCode("ptx",
                   {reinterpret_cast<const char *>(ptx.data()), ptx.size()});
    if (hasCubin)
      writer.addCode("cubin", "no machine code");
    if (i == 0)
      whole = std::move(writer);
    else
      whole.join(std::move(writer));
  }
  std::string bytes = *whole.bytes();
  return *artifact::ArtifactReader::fromMemory(
      std::as_bytes(std::span<const char>(bytes)));
}

// One artifact is for several GPUs: before, all had to run the code of one, or
// there was none for them.
TEST_F(CudaCode, TheVariantForTheDeviceIsChosen) {
  auto chosen = [&](int major, int minor,
                    const std::vector<std::string> &archs) {
    device.reset();
    tandemEmulatorSetCapability(major, minor);
    open();
    artifact::ArtifactReader reader = variantsOf(archs);
    Status status = device->choose(reader, "");
    return status.ok() ? reader.manifest().target.arch : status.message();
  };
  std::vector<std::string> usual = {"sm_90a", "sm_80"};
  EXPECT_EQ(chosen(9, 0, usual), "sm_90a");
  EXPECT_EQ(chosen(8, 0, usual), "sm_80");
  EXPECT_EQ(chosen(8, 9, usual), "sm_80");
  EXPECT_EQ(chosen(10, 3, usual), "sm_80"); // sm_90a runs on 9.0 alone
  EXPECT_EQ(chosen(12, 0, {"sm_80", "sm_90", "sm_100a"}), "sm_90");
  // Just this device, then machine code, then the latest PTX.
  EXPECT_EQ(chosen(8, 6, {"sm_80!", "sm_86"}), "sm_86");
  EXPECT_EQ(chosen(8, 9, {"sm_80!", "sm_86"}), "sm_80");
  EXPECT_EQ(chosen(9, 0, {"sm_90!", "sm_90a"}), "sm_90");
  EXPECT_EQ(chosen(9, 0, {"sm_90", "sm_90a"}), "sm_90a");
  EXPECT_EQ(chosen(10, 0, {"sm_80!", "sm_90!"}), "sm_90");
  EXPECT_NE(chosen(8, 0, {"sm_90", "sm_86"})
                .find("expected a device for one of 'sm_90', 'sm_86' but got "),
            std::string::npos);
}

// What is chosen is what is loaded and run, not the first of the sections.
TEST_F(CudaCode, TheChosenVariantRuns) {
  artifact::ArtifactReader reader = variantsOf({"sm_100", "sm_80"});
  expectError(device->load(reader).status(), "'sm_100'");
  expectOk(device->choose(reader, ""));
  auto loaded = device->load(reader);
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_EQ((*loaded)->description(), "PTX");
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

// Scratch memory whose zeros were refused was used as it was from then on.
TEST_F(CudaCode, ScratchMemoryThatCouldNotBeZeroed) {
  load();
  Stream s = stream(8);
  int64_t used = gpu().memoryUsage().used;
  tandemEmulatorFail("fill:1");
  expectError(tryRun(forward, s, false), "cuMemsetD8Async");
  EXPECT_FALSE(device->isLost());
  EXPECT_EQ(gpu().memoryUsage().used, used);
  tandemEmulatorFail("fill:1");
  expectError(tryRun(forward, s, false), "cuMemsetD8Async");
  run(forward, s, false);
  EXPECT_EQ(download(out, length, s), forwarded());
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

// A fault that comes with a later wait was said to be that wait's alone.
TEST_F(CudaCode, AFaultNamesWhatWasQueued) {
  for (bool useGraph : {false, true}) {
    open();
    load();
    Stream s = stream(8);
    run(forward, s, false);
    tandemEmulatorSetPolicy("lazy");
    tandemEmulatorFail("launch:2");
    Status status = tryRun(evaluate, s, useGraph);
    if (status.ok())
      status = device->synchronize(s);
    expectError(status, "CUDA_ERROR_LAUNCH_FAILED");
    expectError(status, "queued last: 'forward' and 'evaluate' (with "
                        "TANDEM_CUDA_DEBUG=sync the launch is named)");
    EXPECT_TRUE(device->isLost());
    unload();
    tandemEmulatorReset();
  }
}

TEST_F(CudaCode, DebuggingNamesTheLaunchOfAFault) {
  setenv("TANDEM_CUDA_DEBUG", "sync", 1);
  open();
  load();
  Stream s = stream(8);
  // Without a graph, in which launches have no names.
  uint64_t graphs = tandemEmulatorGetCounts().graphLaunches;
  run(evaluate, s, true);
  EXPECT_EQ(download(out, length, s), evaluated());
  EXPECT_EQ(tandemEmulatorGetCounts().graphLaunches, graphs);
  tandemEmulatorSetPolicy("lazy");
  tandemEmulatorFail("launch:2");
  expectError(tryRun(evaluate, s, true),
              "launch 1 ('thrice') of program 'evaluate': cuStreamSynchronize "
              "failed: CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_TRUE(device->isLost());
  expectError(tryRun(evaluate, s, true), "device 'cuda:0' is lost: ");
  setenv("TANDEM_CUDA_DEBUG", "synch", 1);
  unload();
  auto wrong = tryOpen();
  unsetenv("TANDEM_CUDA_DEBUG");
  ASSERT_FALSE(wrong.ok());
  expectError(wrong.status(),
              "expected TANDEM_CUDA_DEBUG to be 'sync', but got 'synch'");
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
  expectError(status, "expected the section 'emulation'");
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

} // namespace
