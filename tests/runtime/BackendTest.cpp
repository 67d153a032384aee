//===- BackendTest.cpp - what every device does ---------------------------===//
//
// The conformance suite of runtime/device/Backend.h: a device that passes it
// can have models. Linked into one test program for each device: the host, the
// fake one, and the layer for GPUs over the emulator, which finds races
// besides. Nothing here asks which it is.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Backend.h"
#include "tests/runtime/Maker.h"

#include <cstring>
#include <numeric>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

using Floats = std::vector<float>;

void expectOk(const Status &status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

Floats range(size_t count, float first = 0) {
  Floats values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class BackendRows : public ::testing::Test {
protected:
  /// Memory that a test was given, and the stream it is for.
  struct Block {
    void *data;
    Stream stream;
  };

  void TearDown() override {
    for (const Block &block : blocks)
      backend.release(block.data, block.stream, {});
    for (Stream stream : {Stream(nullptr), one, other})
      expectOk(backend.synchronize(stream));
  }

  float *floats(size_t count, Stream stream = nullptr) {
    Result<void *> made =
        backend.allocate(static_cast<int64_t>(count * sizeof(float)), stream);
    EXPECT_TRUE(made.ok()) << made.status().message();
    blocks.push_back({*made, stream});
    return static_cast<float *>(*made);
  }
  /// Gives a block back before the test ends.
  void release(void *data, std::span<const Stream> others = {}) {
    auto found = std::find_if(blocks.begin(), blocks.end(),
                              [=](const Block &b) { return b.data == data; });
    backend.release(data, found->stream, others);
    blocks.erase(found);
  }
  float *uploaded(const Floats &values, Stream stream = nullptr) {
    float *to = floats(values.size(), stream);
    expectOk(backend.copy(to, values.data(), bytes(values.size()), stream));
    return to;
  }
  /// What the host is given was copied on return.
  Floats read(const void *from, size_t count, Stream stream = nullptr) {
    Floats values(count);
    expectOk(backend.copy(values.data(), from, bytes(count), stream));
    return values;
  }
  static int64_t bytes(size_t count) {
    return static_cast<int64_t>(count * sizeof(float));
  }

  Backend &backend = **backendOf(testDevice());
  Stream one = *backend.side(0), other = *backend.side(1);
  std::vector<Block> blocks;
};

TEST_F(BackendRows, SaysWhatItIs) {
  EXPECT_EQ(backend.device(), testDevice());
  EXPECT_EQ(*backendOf(testDevice()), &backend) << "opened once";
  EXPECT_FALSE(backend.description().empty());
  EXPECT_FALSE(backend.isLost());
  EXPECT_EQ(*backend.side(1), other) << "the same for the same number";
}

TEST_F(BackendRows, MemoryIsAlignedAndApart) {
  std::vector<std::pair<char *, int64_t>> made;
  // From a byte to several huge pages.
  for (int64_t size : {1, 4, 64, 4096, 5000000, 2 << 20, 5000000, 100}) {
    Result<void *> data = backend.allocate(size, nullptr);
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*data) % storageAlignment, 0u);
    auto *begin = static_cast<char *>(*data);
    for (auto [before, length] : made)
      EXPECT_TRUE(begin + size <= before || before + length <= begin);
    EXPECT_TRUE(backend.owns(begin) && backend.owns(begin + size - 1));
    expectOk(backend.zero(begin, size, nullptr));
    made.emplace_back(begin, size);
  }
  for (auto [data, size] : made)
    backend.release(data, nullptr, {});
}

TEST_F(BackendRows, CopiesInEveryDirection) {
  float *a = uploaded(range(100)), *b = floats(100);
  expectOk(backend.copy(b, a, bytes(100), nullptr));
  EXPECT_EQ(read(b, 100), range(100));
  expectOk(backend.copy(b, a, 0, nullptr)); // nothing
  expectOk(backend.copy(b, b, bytes(100), nullptr));
  EXPECT_EQ(read(b, 100), range(100));
}

TEST_F(BackendRows, CopiesOverlap) {
  float *a = uploaded(range(100));
  expectOk(backend.copy(a + 10, a, bytes(90), nullptr));
  Floats expected = range(100);
  std::copy_n(range(90).begin(), 90, expected.begin() + 10);
  EXPECT_EQ(read(a, 100), expected);
  expectOk(backend.copy(a, a + 10, bytes(90), nullptr));
  std::copy_n(range(90).begin(), 90, expected.begin());
  EXPECT_EQ(read(a, 100), expected);
}

TEST_F(BackendRows, PinnedMemory) {
  Result<void *> made = backend.allocatePinned(bytes(8));
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto *pinned = static_cast<float *>(*made);
  float *a = floats(8, one);
  backend.usePinned(pinned, bytes(8), /*isWrite=*/true);
  std::iota(pinned, pinned + 8, 1.0f);
  expectOk(backend.copy(a, pinned, bytes(8), one));
  expectOk(backend.synchronize(one));
  backend.usePinned(pinned, bytes(8), /*isWrite=*/true);
  std::fill_n(pinned, 8, 0.0f);
  expectOk(backend.copy(pinned, a, bytes(8), one));
  Fence fence = nullptr;
  expectOk(backend.record(fence, one));
  expectOk(backend.await(fence));
  backend.usePinned(pinned, bytes(8), /*isWrite=*/false);
  EXPECT_EQ(Floats(pinned, pinned + 8), range(8, 1));
  backend.releaseFence(fence);
  backend.releasePinned(pinned);
}

TEST_F(BackendRows, StridedCopies) {
  float *a = uploaded(range(24)), *b = uploaded(Floats(24));
  // The transpose of a matrix of 4 x 6.
  const int64_t sizes[] = {6, 4}, to[] = {16, 4}, from[] = {4, 24};
  expectOk(backend.copyStrided({b, a, sizes, to, from, 4}, nullptr));
  Floats expected(24);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j)
      expected[i * 4 + j] = static_cast<float>(j * 6 + i);
  EXPECT_EQ(read(b, 24), expected);
  // Every second element of 2 x 3 rows, to dense ones.
  const int64_t some[] = {2, 3, 2}, dense[] = {24, 8, 4}, every[] = {48, 16, 8};
  expectOk(backend.copyStrided({b, a, some, dense, every, 4}, nullptr));
  for (int i = 0; i < 12; ++i)
    expected[i] = static_cast<float>(i * 2);
  EXPECT_EQ(read(b, 24), expected);
  // One element to all, a scalar, and nothing.
  const int64_t all[] = {24}, step[] = {4}, none[] = {0};
  expectOk(backend.copyStrided({b, a + 7, all, step, none, 4}, nullptr));
  EXPECT_EQ(read(b, 24), Floats(24, 7));
  expectOk(backend.copyStrided({b + 1, a + 3, {}, {}, {}, 4}, nullptr));
  EXPECT_EQ(read(b, 3), (Floats{7, 3, 7}));
  expectOk(backend.copyStrided({b, a, none, step, step, 4}, nullptr));
  EXPECT_EQ(read(b, 3), (Floats{7, 3, 7}));
}

TEST_F(BackendRows, StridedCopiesOfEveryWidth) {
  for (int64_t width : {1, 2, 4, 8}) {
    std::string host(static_cast<size_t>(width * 12), '\0'), back = host;
    std::iota(host.begin(), host.end(), 'a');
    float *a = floats(24), *b = floats(24);
    auto size = static_cast<int64_t>(host.size());
    expectOk(backend.copy(a, host.data(), size, nullptr));
    const int64_t sizes[] = {3, 4}, to[] = {4 * width, width},
                  from[] = {width, 3 * width};
    expectOk(backend.copyStrided({b, a, sizes, to, from, width}, nullptr));
    expectOk(backend.copy(back.data(), b, size, nullptr));
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j)
        EXPECT_EQ(back.substr((i * 4 + j) * width, width),
                  host.substr((j * 3 + i) * width, width));
  }
}

TEST_F(BackendRows, ZerosFillsAndAdds) {
  float *a = uploaded(range(9)), *b = uploaded(range(9, 10));
  expectOk(backend.zero(a + 2, bytes(3), nullptr));
  EXPECT_EQ(read(a, 9), (Floats{0, 1, 0, 0, 0, 5, 6, 7, 8}));
  expectOk(backend.fill(DType::F32, a + 1, 2.5, 4, nullptr));
  EXPECT_EQ(read(a, 9), (Floats{0, 2.5, 2.5, 2.5, 2.5, 5, 6, 7, 8}));
  expectOk(backend.add(DType::F32, b, a, b, 9, nullptr)); // y is overwritten
  EXPECT_EQ(read(b, 9), (Floats{10, 13.5, 14.5, 15.5, 16.5, 20, 22, 24, 26}));
  expectOk(backend.add(DType::F32, a, a, a, 9, nullptr)); // both
  EXPECT_EQ(read(a, 9), (Floats{0, 5, 5, 5, 5, 10, 12, 14, 16}));
  expectOk(backend.zero(a, 0, nullptr));
  expectOk(backend.fill(DType::F32, a, 1, 0, nullptr));
  expectOk(backend.add(DType::F32, a, a, b, 0, nullptr));
  EXPECT_EQ(read(a, 2), (Floats{0, 5}));
  Status status = backend.add(DType::I32, a, a, b, 9, nullptr);
  EXPECT_EQ(status.code(), Code::Usage);
}

TEST_F(BackendRows, EveryFloatingPointTypeIsFilledAndAdded) {
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const int64_t shape[] = {5};
    Tensor host = *Tensor::zeros(dtype, shape),
           back = *Tensor::zeros(dtype, shape);
    void *a = floats(10), *b = floats(10);
    expectOk(backend.fill(dtype, a, 1.5, 5, nullptr));
    expectOk(backend.fill(dtype, b, -0.25, 5, nullptr));
    expectOk(backend.add(dtype, a, a, b, 5, nullptr));
    expectOk(backend.copy(back.mutableData(), a, back.bytes(), nullptr));
    expectOk(host.fill(1.25));
    EXPECT_EQ(std::memcmp(back.data(), host.data(), host.bytes()), 0)
        << spelling(dtype);
  }
}

TEST_F(BackendRows, StreamsWaitForEachOther) {
  float *a = uploaded(range(1000), one), *b = floats(1000, other);
  expectOk(backend.add(DType::F32, a, a, a, 1000, one));
  expectOk(backend.wait(other, one));
  expectOk(backend.copy(b, a, bytes(1000), other));
  expectOk(backend.wait(one, other));
  expectOk(backend.zero(a, bytes(1000), one)); // after it was read
  expectOk(backend.wait(one, one));            // nothing
  Floats twice = range(1000);
  for (float &value : twice)
    value *= 2;
  EXPECT_EQ(read(b, 1000, other), twice);
  EXPECT_EQ(read(a, 1000, one), Floats(1000));
}

TEST_F(BackendRows, FencesArePointsInAStream) {
  float *a = uploaded(range(10), one), *b = floats(10, other);
  Fence fence = nullptr;
  expectOk(backend.await(fence)); // nothing is before a null one
  expectOk(backend.waitFor(other, fence));
  expectOk(backend.record(fence, one));
  expectOk(backend.waitFor(other, fence));
  expectOk(backend.copy(b, a, bytes(10), other));
  EXPECT_EQ(read(b, 10, other), range(10));
  expectOk(backend.add(DType::F32, a, a, a, 10, one));
  expectOk(backend.record(fence, one)); // moved
  expectOk(backend.waitFor(other, fence));
  expectOk(backend.copy(b, a, bytes(10), other));
  EXPECT_EQ(read(b, 10, other)[9], 18);
  backend.releaseFence(fence);
  backend.releaseFence(nullptr);
}

TEST_F(BackendRows, BytesAreNotUsedAnewBeforeTheirUsersAreDone) {
  float *b = floats(1000, other);
  for (int round = 0; round < 3; ++round) {
    float *a = uploaded(range(1000), one);
    expectOk(backend.wait(other, one));
    expectOk(backend.copy(b, a, bytes(1000), other));
    release(a, {&other, 1});
    float *anew = floats(1000, one);
    expectOk(backend.zero(anew, bytes(1000), one));
    EXPECT_EQ(read(b, 1000, other), range(1000));
    release(anew);
  }
}

TEST_F(BackendRows, NothingIsCapturedUnlessAsked) {
  for (Stream stream : {Stream(nullptr), one}) {
    EXPECT_FALSE(backend.isCapturing(stream));
    backend.breakCapture(stream);
    expectOk(backend.synchronize(stream));
  }
}

/// o = x * x, in two launches; p = x + x; q = 2 x.
artifact::ArtifactReader launches() {
  Maker m;
  m.value(Role::Input, "x", {4});
  for (const char *output : {"o", "p", "q"})
    m.value(Role::Output, output, {4});
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {4}), copy = m.arena(16);
  m.launch("copy", {x}, copy, 4);
  m.launch("mul", {x, copy}, m.result(Role::Output, "o", {4}), 4);
  m.launch("add", {x, x}, m.result(Role::Output, "p", {4}), 4);
  m.launch("twice", {x}, m.result(Role::Output, "q", {4}), 4);
  artifact::ArtifactReader reader =
      readerFor(testDevice().isHost() ? m.manifest : forDevice(m.manifest));
  EXPECT_TRUE(reader.choose(targetOf(testDevice().kind)));
  return reader;
}

TEST_F(BackendRows, CodeRunsItsLaunchesInOrder) {
  artifact::ArtifactReader reader = launches();
  expectOk(backend.choose(reader, ""));
  auto code = backend.load(reader, {});
  ASSERT_TRUE(code.ok()) << code.status().message();
  EXPECT_GE((*code)->threads(), 1);
  auto account = std::make_shared<MemoryAccount>();
  expectOk((*code)->reserve(0, account));
  float *x = uploaded(range(4, 1), one), *o = floats(4, one),
        *p = floats(4, one), *q = floats(4, one), *arena = floats(16, one);
  std::vector<void *> buffers = {x, arena, o, p, q};
  std::vector<Action> actions(4, runKernel);
  ProgramRun run;
  run.buffers = buffers;
  run.actions = actions;
  run.stream = one;
  for (bool useGraph : {false, true, true}) {
    run.useGraph = useGraph;
    expectOk((*code)->run(run));
    EXPECT_EQ(read(o, 4, one), (Floats{1, 4, 9, 16}));
    EXPECT_EQ(read(p, 4, one), (Floats{2, 4, 6, 8}));
    EXPECT_EQ(read(q, 4, one), (Floats{2, 4, 6, 8}));
    expectOk(backend.zero(o, bytes(4), one));
  }
  // One is skipped, one writes zeros, one copies what it would read.
  actions = {runKernel, skipLaunch, writeZeros, 0};
  expectOk((*code)->run(run));
  EXPECT_EQ(read(o, 4, one), Floats(4));
  EXPECT_EQ(read(p, 4, one), Floats(4));
  EXPECT_EQ(read(q, 4, one), range(4, 1));
}

TEST_F(BackendRows, CodeClearsStorages) {
  auto code = backend.load(launches(), {});
  ASSERT_TRUE(code.ok()) << code.status().message();
  auto storage = *Storage::allocate(bytes(100), nullptr, testDevice());
  expectOk(backend.fill(DType::F32, storage->data(), 1, 100, nullptr));
  expectOk((*code)->clear(*storage));
  EXPECT_EQ(read(storage->data(), 100), Floats(100));
}

TEST_F(BackendRows, VariantsAreOfProcessors) {
  artifact::ArtifactReader reader = launches();
  Status status = backend.choose(reader, "no-such-processor");
  EXPECT_EQ(status.code(), Code::Usage);
  expectMessage(status, "variants");
}

TEST_F(BackendRows, PhasesNest) {
  backend.beginPhase("outer");
  backend.beginPhase("inner");
  backend.endPhase();
  backend.endPhase();
}

} // namespace
