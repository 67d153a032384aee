//===- HostCopiesTest.cpp - copies to the host and back, in a program -----===//
//
// A program that keeps a value in pinned memory while its place on the device
// is used for others. What it computes does not depend on when what was queued
// runs; the kernels do not wait for a copy but where they must; and without
// any one of the waits the emulator finds a race.
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"
#include "cuda/Plan.h"
#include "tests/cuda/Emulated.h"

using namespace tandem;
using namespace tandem::test;
using artifact::Buffer;
using artifact::Launch;
using runtime::Action;
using runtime::Stream;

namespace {

/// out = 2 x + 6 y; 2 x is on the host while its place has 3 y.
void offloading(artifact::Manifest &manifest) {
  artifact::Program &p = manifest.programs[0];
  p.arenaBytes = 512;
  p.hostBytes = 256;
  p.buffers = {Buffer::argument(0),     Buffer::argument(1),
               Buffer::result(0),       Buffer::arena(0, 256),
               Buffer::arena(256, 256), Buffer::host(0, 256)};
  auto launch = [](int64_t kernel, std::vector<int64_t> reads, int64_t write) {
    Launch made;
    made.kernel = kernel;
    made.buffers = reads;
    for (size_t i = 0; i < reads.size(); ++i)
      made.reads.push_back(static_cast<int64_t>(i));
    made.writes = {static_cast<int64_t>(reads.size())};
    made.buffers.push_back(write);
    made.grid = {1, 1, 1};
    return made;
  };
  p.launches = {launch(0, {0}, 3),  // 2 x
                Launch::copy(3, 5), //
                launch(1, {1}, 3),  // 3 y, where 2 x was
                launch(0, {3}, 4),  // 6 y
                Launch::copy(5, 3), // 2 x, where 3 y was
                launch(2, {3, 4}, 2)};
}

class HostCopies : public Emulated {
protected:
  void SetUp() override {
    Emulated::SetUp();
    open();
  }
  void load() {
    auto loaded = device->load(programs(offloading));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    code = std::move(*loaded);
    home = stream(6);
    x = allocate(length, home);
    y = allocate(length, home);
    out = allocate(length, home);
    arena = allocate(2 * length, home);
    host = *device->allocatePinned(length * sizeof(float));
    upload(x, range(length), home);
    upload(y, range(length, 100), home);
    expectOk(device->synchronize(home));
  }
  void unload() {
    code.reset();
    for (float *data : {x, y, out, arena})
      device->release(data, home, {});
    device->releasePinned(host);
  }
  void run(bool useGraph) {
    void *buffers[] = {x, y, out, arena, arena + length, host};
    Action actions[] = {runtime::runKernel, 0, runtime::runKernel,
                        runtime::runKernel, 0, runtime::runKernel};
    expectOk(code->run({0, buffers, actions, home, useGraph}));
  }

  std::unique_ptr<runtime::DeviceCode> code;
  Stream home = nullptr;
  float *x = nullptr, *y = nullptr, *out = nullptr, *arena = nullptr;
  void *host = nullptr;
};

TEST_F(HostCopies, TheSameWheneverTheyRun) {
  std::vector<float> expected(length);
  for (int64_t i = 0; i < length; ++i)
    expected[i] = 2 * static_cast<float>(i) + 6 * (100 + static_cast<float>(i));
  for (const char *policy : policies)
    for (bool useGraph : {false, true}) {
      SCOPED_TRACE(std::string(policy) + (useGraph ? ", graph" : ", streams"));
      tandemEmulatorSetPolicy(policy);
      load();
      for (int i = 0; i < 3; ++i) {
        upload(out, std::vector<float>(length, -1), home);
        run(useGraph);
        EXPECT_EQ(download(out, length, home), expected);
      }
      unload();
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
}

TEST_F(HostCopies, AsksTheDriverForNothingTheSecondTime) {
  load();
  for (bool useGraph : {false, true}) {
    run(useGraph);
    TandemEmulatorCounts before = tandemEmulatorGetCounts();
    size_t events = tandemEmulatorLiveHandles("event");
    size_t streams = tandemEmulatorLiveHandles("stream");
    run(useGraph);
    TandemEmulatorCounts after = tandemEmulatorGetCounts();
    EXPECT_EQ(after.copies, before.copies + 2);
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.hostAllocations, before.hostAllocations);
    EXPECT_EQ(after.syncs, before.syncs);
    EXPECT_EQ(tandemEmulatorLiveHandles("event"), events);
    EXPECT_EQ(tandemEmulatorLiveHandles("stream"), streams);
  }
  unload();
}

// Each way has a stream, on which nothing waits but for what is read and
// overwritten.
TEST_F(HostCopies, HaveStreamsOfTheirOwn) {
  artifact::ArtifactReader reader = programs(offloading);
  const artifact::Manifest &manifest = reader.manifest();
  Action actions[] = {runtime::runKernel, 0, runtime::runKernel,
                      runtime::runKernel, 0, runtime::runKernel};
  char memory[2048];
  void *buffers[] = {memory,        memory + 256,  memory + 512,
                     memory + 1024, memory + 1280, memory + 1536};
  cuda::CommandList list(manifest, manifest.programs[0], actions,
                         cuda::rangesOf(manifest.programs[0], buffers),
                         cuda::StreamTags(manifest));
  EXPECT_EQ(list.dump(),
            "0: 'twice' on 0 reads argument 0 writes arena [0, 256)\n"
            "1: copy to host on 1 reads arena [0, 256) writes host [0, 256) "
            "after 0 waits for 0\n"
            "2: 'thrice' on 0 reads argument 1 writes arena [0, 256) after 1 "
            "waits for 1\n"
            "3: 'twice' on 0 reads arena [0, 256) writes arena [256, 512) "
            "after 2\n"
            "4: copy from host on 2 reads host [0, 256) writes arena [0, 256) "
            "after 3 waits for 3\n"
            "5: 'sum' on 0 reads arena [0, 256), arena [256, 512) writes "
            "result 0 after 4 waits for 4\n");
}

//===----------------------------------------------------------------------===//
// Without a wait
//===----------------------------------------------------------------------===//

/// Zeros, to the host, zeros again, back, and on: with two numbers for every
/// buffer that is used twice, so that one of them can be said to lie elsewhere.
class MissingWaits : public HostCopies {
protected:
  enum { made, sent, reused, kept, fetched, brought, read, result };

  void SetUp() override {
    HostCopies::SetUp();
    artifact::Program &p = manifest.programs.emplace_back();
    p.name = "evaluate";
    manifest.kernels.resize(1);
    p.arenaBytes = 512;
    p.hostBytes = 256;
    p.buffers = {Buffer::arena(0, 256),   Buffer::arena(0, 256),
                 Buffer::arena(0, 256),   Buffer::host(0, 256),
                 Buffer::host(0, 256),    Buffer::arena(256, 256),
                 Buffer::arena(256, 256), Buffer::arena(512, 256)};
    Launch zero;
    zero.buffers = {made};
    zero.writes = {0};
    p.launches.push_back(zero);
    p.launches.push_back(Launch::copy(sent, kept));
    zero.buffers = {reused};
    p.launches.push_back(zero);
    p.launches.push_back(Launch::copy(fetched, brought));
    Launch copy;
    copy.buffers = {read, result};
    copy.reads = {0};
    copy.writes = {1};
    p.launches.push_back(copy);
  }

  /// Runs it as if buffer `moved` (-1: none) shared no bytes with any other.
  void runWithout(int moved) {
    const artifact::Program &program = manifest.programs[0];
    float *device = allocate(3 * length, home), *second = device + length;
    void *host = *this->device->allocatePinned(256);
    void *buffers[] = {device, device, device, host,
                       host,   second, second, second + length};
    std::vector<cuda::ByteRange> places = cuda::rangesOf(program, buffers);
    if (moved >= 0)
      places[moved] = {99, 0, 256};
    Action actions[] = {runtime::writeZeros, 0, runtime::writeZeros, 0, 0};
    // The memory is there for any stream.
    expectOk(this->device->synchronize(home));
    expectOk(this->device->synchronize(nullptr));
    auto driver = cuda::Driver::open(TANDEM_EMULATOR);
    ASSERT_TRUE(driver.ok());
    auto context =
        cuda::Context::open(std::make_shared<const cuda::Driver>(*driver),
                            {runtime::DeviceKind::Cuda, 0});
    ASSERT_TRUE(context.ok()) << context.status().message();
    {
      cuda::Context::Scope scope(**context);
      cuda::EventPool events(**context);
      cuda::SideStreams sides(**context);
      cuda::driver::CUstream streams[] = {*sides.at(0), *sides.at(1),
                                          *sides.at(2)};
      cuda::Plan plan(**context, manifest, program,
                      cuda::CommandList(manifest, program, actions, places,
                                        cuda::StreamTags(manifest)),
                      {});
      expectOk(plan.place(buffers, [](int) -> Result<void *> {
        return Status::failed("no kernel has scratch memory");
      }));
      expectOk(plan.queue(streams, events, nullptr));
      for (cuda::driver::CUstream stream : streams)
        EXPECT_EQ((*context)->call().streamSynchronize(stream),
                  cuda::driver::CUDA_SUCCESS);
    }
    this->device->release(device, home, {});
    this->device->releasePinned(host);
  }

  artifact::Manifest manifest;
};

TEST_F(MissingWaits, AreRaces) {
  for (const char *policy : {"eager", "lazy", "others-first"}) {
    tandemEmulatorSetPolicy(policy);
    runWithout(-1);
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    // The copy to the host before the value is made; the value overwritten
    // before it is on the host; the copy back before that; what it brings read
    // before it is there.
    for (int moved : {made, reused, fetched, read}) {
      runWithout(moved);
      EXPECT_GT(tandemEmulatorErrorCount(), 0u) << policy << ", " << moved;
      tandemEmulatorClearErrors();
    }
  }
}

} // namespace
