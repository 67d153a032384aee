//===- LibrariesTest.cpp - launches as calls of libraries -----------------===//
//
// The program 'evaluate' of Emulated.h, whose last launch, a sum of 64 floats,
// is said to be a product of two 8x8 matrices: which of the two ran is seen in
// the numbers.
//
//===----------------------------------------------------------------------===//
#include "cuda/CommandList.h"
#include "tests/cuda/ProgramTest.h"
#include "tests/support/Folder.h"

#include <cstdlib>
#include <filesystem>

using namespace tandem;
using namespace tandem::test;
using artifact::LibraryCall;
using artifact::Manifest;
using runtime::Stream;

namespace {

constexpr int64_t workspaceBytes = 8192;

LibraryCall product() {
  LibraryCall call;
  call.op = "matmul";
  call.operands = {0, 1, 2};
  call.sizes = {1, 8, 8, 8};
  call.lds = {8, 8, 8};
  call.batchStrides = {0, 0, 0};
  call.transposes = {0, 0};
  call.workspace = 5;
  return call;
}

/// The programs, whose last launch of 'evaluate' has this call.
artifact::ArtifactReader
withLibrary(const LibraryCall &call = product(),
            const std::function<void(Manifest &)> &more = {}) {
  return programs([&](Manifest &m) {
    artifact::Program &p = m.programs[evaluate];
    p.arenaBytes = 512 + workspaceBytes;
    p.buffers.push_back(artifact::Buffer::arena(512, workspaceBytes));
    p.launches[2].library = call;
    if (more)
      more(m);
  });
}

/// (2 x) (3 y) of the ranges that `load` writes, as matrices.
std::vector<float> multiplied() {
  std::vector<float> values(length);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 8; ++k)
        values[i * 8 + j] += 2 * float(i * 8 + k) * 3 * float(100 + k * 8 + j);
  return values;
}

class CudaLibraries : public CudaCode {
protected:
  void SetUp() override {
    Emulated::SetUp();
    openWith({{TANDEM_EMULATOR}, {TANDEM_EMULATOR}});
  }
  void TearDown() override {
    if (work)
      device->release(work, home, {});
    work = nullptr;
    CudaCode::TearDown();
  }

  void openWith(cuda::LibraryFiles files) {
    auto driver = cuda::Driver::open(TANDEM_EMULATOR);
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    auto opened = cuda::CudaDevice::open(
        std::make_shared<const cuda::Driver>(*driver),
        {runtime::DeviceKind::Cuda, 0}, std::move(files));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    device = *opened;
  }

  void load(const artifact::ArtifactReader &reader = withLibrary()) {
    CudaCode::load(reader);
    if (!work)
      work = allocate(workspaceBytes / 4, home);
    expectOk(device->synchronize(home));
  }

  Status tryRunIt(Stream stream, bool useGraph, float *to = nullptr) {
    std::vector<void *> buffers = {x,   y, to ? to : out, arena, arena + length,
                                   work};
    std::vector<runtime::Action> actions = all(3);
    return code->run({evaluate, buffers, actions, stream, useGraph});
  }
  void runIt(Stream stream, bool useGraph, float *to = nullptr) {
    expectOk(tryRunIt(stream, useGraph, to));
  }

  float *work = nullptr;
};

/// Libraries that Python's packages installed were not found.
TEST(LibraryFiles, AreLookedForWhereTheVariableSays) {
  namespace fs = std::filesystem;
  test::Folder made;
  const std::string &folder = made.path();
  fs::create_directories(folder + "/nvidia/cublas/lib");
  fs::create_directories(folder + "/nvidia/cudnn/lib");
  fs::create_directories(folder + "/nvidia/nccl/lib");
  std::string blas = folder + "/nvidia/cublas/lib/libcublasLt.so.12";
  std::string dnn = folder + "/nvidia/cudnn/lib/libcudnn.so.9";
  std::string nccl = folder + "/nvidia/nccl/lib/libnccl.so.2";
  for (const std::string &name : {blas, dnn, nccl})
    fs::create_symlink(TANDEM_EMULATOR, name);
  std::vector<std::string> usual = cuda::LibraryFiles::installed().blas;
  ::setenv("TANDEM_CUDA_LIBRARIES", ("/nowhere::" + folder).c_str(), 1);
  cuda::LibraryFiles files = cuda::LibraryFiles::installed();
  ASSERT_EQ(files.blas.size(), usual.size() + 1);
  EXPECT_EQ(files.blas.front(), blas);
  EXPECT_EQ(files.dnn, (std::vector<std::string>{dnn, "libcudnn.so.9"}));
  EXPECT_EQ(files.nccl, (std::vector<std::string>{nccl, "libnccl.so.2"}));
  for (auto &[name, found] : cuda::describeInstalled())
    EXPECT_TRUE(found) << name << ": " << found.status().message();
  ::unsetenv("TANDEM_CUDA_LIBRARIES");
  EXPECT_EQ(cuda::LibraryFiles::installed().blas, usual);
}

TEST_F(CudaLibraries, OnStreamsAndInGraphs) {
  for (const char *policy : policies)
    for (bool useGraph : {false, true}) {
      SCOPED_TRACE(std::string(policy) + (useGraph ? ", graph" : ", streams"));
      tandemEmulatorSetPolicy(policy);
      load();
      for (Stream s : {stream(8), home, Stream()}) {
        upload(out, std::vector<float>(length, -1), s);
        runIt(s, useGraph);
        EXPECT_EQ(download(out, length, s), multiplied());
      }
      unload();
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
}

/// A graph's call goes to where the buffers lie now, without a new graph.
TEST_F(CudaLibraries, GraphsFollowAddresses) {
  load();
  Stream s = stream(8);
  float *other = allocate(length, home);
  expectOk(device->synchronize(home));
  runIt(s, true);
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  for (float *to : {other, out, other}) {
    upload(to, std::vector<float>(length, -1), s);
    runIt(s, true, to);
    EXPECT_EQ(download(to, length, s), multiplied());
  }
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_EQ(after.graphInstantiations, before.graphInstantiations);
  EXPECT_EQ(after.graphLaunches, before.graphLaunches + 3);
  device->release(other, home, {});
}

TEST_F(CudaLibraries, AHundredStepsAllocateNothing) {
  load();
  Stream s = stream(8);
  for (bool useGraph : {false, true}) {
    runIt(s, useGraph);
    TandemEmulatorCounts before = tandemEmulatorGetCounts();
    size_t live = tandemEmulatorLiveAllocations();
    for (int i = 0; i < 100; ++i)
      runIt(s, useGraph);
    TandemEmulatorCounts after = tandemEmulatorGetCounts();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.syncs, before.syncs);
    EXPECT_EQ(after.captures, before.captures);
    EXPECT_EQ(after.graphInstantiations, before.graphInstantiations);
    EXPECT_EQ(tandemEmulatorLiveAllocations(), live);
  }
  EXPECT_EQ(download(out, length, s), multiplied());
}

/// A caller's capture has the call in it.
TEST_F(CudaLibraries, InACapture) {
  load();
  Stream s = stream(8);
  runIt(s, true);
  auto call = cuda::Driver::open(TANDEM_EMULATOR);
  ASSERT_TRUE(call.ok());
  cuda::driver::CUcontext context = nullptr;
  ASSERT_EQ((*call)->devicePrimaryCtxRetain(&context, 0), 0);
  ASSERT_EQ((*call)->ctxSetCurrent(context), 0);
  auto cu = static_cast<cuda::driver::CUstream>(s);
  cuda::driver::CUgraph graph = nullptr;
  cuda::driver::CUgraphExec exec = nullptr;
  ASSERT_EQ((*call)->streamBeginCapture(
                cu, cuda::driver::CU_STREAM_CAPTURE_MODE_GLOBAL),
            0);
  runIt(s, true);
  ASSERT_EQ((*call)->streamEndCapture(cu, &graph), 0);
  ASSERT_EQ((*call)->graphInstantiate(&exec, graph, 0), 0);
  upload(out, std::vector<float>(length, -1), s);
  ASSERT_EQ((*call)->graphLaunch(exec, cu), 0);
  EXPECT_EQ(download(out, length, s), multiplied());
  (*call)->graphExecDestroy(exec);
  (*call)->graphDestroy(graph);
  (*call)->ctxSetCurrent(nullptr);
  (*call)->devicePrimaryCtxRelease(0);
}

/// Without a library, with one that is too old or too new, or that has no
/// algorithm, and where it is switched off, the kernel runs.
TEST_F(CudaLibraries, OtherwiseTheKernelRuns) {
  Stream s = stream(8);
  auto expectKernel = [&](const char *what) {
    SCOPED_TRACE(what);
    load();
    for (bool useGraph : {false, true}) {
      upload(out, std::vector<float>(length, -1), s);
      runIt(s, useGraph);
      EXPECT_EQ(download(out, length, s), evaluated());
    }
    unload();
    device->release(work, home, {});
    work = nullptr;
  };
  tandemEmulatorFail("algorithm:1");
  expectKernel("no algorithm");
  close();
  for (const char *version : {"blas:110000", "blas:140000"}) {
    tandemEmulatorFail(version);
    openWith({{TANDEM_EMULATOR}, {TANDEM_EMULATOR}});
    s = stream(8);
    expectKernel(version);
    close();
  }
  tandemEmulatorFail(nullptr);
  openWith({{"libnothing.so.1", "libnothing.so.2"}, {}});
  s = stream(8);
  expectKernel("no library");
  close();

  openWith({{"libnothing.so.1", TANDEM_EMULATOR}, {}});
  load();
  runIt(home, false);
  EXPECT_EQ(download(out, length, home), multiplied());
  auto loaded = device->load(withLibrary(), {.useLibraries = false});
  ASSERT_TRUE(loaded.ok());
  code = std::move(*loaded);
  runIt(home, false);
  EXPECT_EQ(download(out, length, home), evaluated());
}

TEST_F(CudaLibraries, AFailedCallIsAStatus) {
  load();
  Stream s = stream(8);
  for (bool useGraph : {false, true}) {
    tandemEmulatorFail("library:1");
    expectError(tryRunIt(s, useGraph),
                "launch 2 ('sum') of program 'evaluate': cublasLtMatmul "
                "failed: the function failed to launch on the GPU");
    runIt(s, useGraph);
    EXPECT_EQ(download(out, length, s), multiplied());
  }
}

TEST_F(CudaLibraries, AProfileNamesThem) {
  load();
  expectOk(device->startProfile());
  runIt(home, true);
  auto trace = device->stopProfile();
  ASSERT_TRUE(trace.ok());
  EXPECT_NE(trace->find("sum (cublasLtMatmul)"), std::string::npos) << *trace;
}

/// The command writes the workspace: what else uses these bytes is ordered.
TEST_F(CudaLibraries, TheWorkspaceIsWritten) {
  artifact::ArtifactReader reader = withLibrary();
  const Manifest &m = reader.manifest();
  const artifact::Program &p = m.programs[evaluate];
  std::vector<char> memory(1 << 14);
  std::vector<void *> addresses;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    addresses.push_back(memory.data() + 256 * b);
  auto places = cuda::rangesOf(p, addresses);
  const bool ofLibrary[] = {false, false, true};
  cuda::CommandList list(m, p, all(3), places, cuda::StreamTags(m), {},
                         ofLibrary);
  EXPECT_NE(
      list.dump().find("2: library 'sum' on 0 reads arena [0, 256), arena "
                       "[256, 512) writes result 0, arena [512, 8704)"),
      std::string::npos)
      << list.dump();
}

/// What a manifest says of a call is checked, so that no library leaves the
/// launch's buffers.
TEST(LibraryManifest, IsChecked) {
  auto problemOf = [](const std::function<void(LibraryCall &)> &change) {
    Manifest m = withLibrary().manifest();
    change(*m.programs[evaluate].launches[2].library);
    return artifact::validate(m, 256).message();
  };
  EXPECT_EQ(problemOf([](LibraryCall &) {}), "");
  auto expect = [&](const std::function<void(LibraryCall &)> &change,
                    const std::string &part) {
    std::string problem = problemOf(change);
    EXPECT_NE(problem.find("/programs/0/launches/2/library" + part),
              std::string::npos)
        << problem;
  };
  expect([](LibraryCall &c) { c.op = "solve"; }, "/op: unknown op 'solve'");
  expect([](LibraryCall &c) { c.dtype = artifact::DType::I32; }, "/dtype");
  expect([](LibraryCall &c) { c.dtype = artifact::DType::F64; },
         "/operands/0: expected a buffer of at least 512 bytes but got 256");
  expect(
      [](LibraryCall &c) {
        c.tf32 = true;
        c.dtype = artifact::DType::F16;
      },
      "/tf32");
  expect([](LibraryCall &c) { c.operands = {0, 1}; }, "/operands");
  expect([](LibraryCall &c) { c.operands[0] = 3; }, "/operands/0");
  expect([](LibraryCall &c) { c.operands[0] = -1; }, "/operands/0");
  expect([](LibraryCall &c) { c.operands = {2, 1, 0}; }, "/operands/0");
  expect([](LibraryCall &c) { c.operands.push_back(2); }, "/operands/3");
  expect([](LibraryCall &c) { c.sizes = {1, 8, 8}; }, "/sizes");
  expect([](LibraryCall &c) { c.sizes[3] = 0; }, "/sizes/3");
  expect([](LibraryCall &c) { c.sizes[1] = int64_t(1) << 40; }, "/sizes/1");
  expect([](LibraryCall &c) { c.sizes[1] = 9; }, "/operands/0");
  expect([](LibraryCall &c) { c.lds[1] = 7; }, "/lds/1: expected at least 8");
  expect([](LibraryCall &c) { c.lds[0] = 9; }, "/operands/0");
  expect([](LibraryCall &c) { c.sizes[0] = 2; }, "/batch_strides/2");
  expect([](LibraryCall &c) { c.batchStrides[0] = -1; }, "/batch_strides/0");
  expect([](LibraryCall &c) { c.transposes[0] = 2; }, "/transposes/0");
  expect([](LibraryCall &c) { c.strides = {1, 1}; }, "/strides");
  expect([](LibraryCall &c) { c.workspace = 6; }, "/workspace");
  expect([](LibraryCall &c) { c.workspace = 0; }, "/workspace");
  expect([](LibraryCall &c) { c.workspace = 3; },
         "/workspace: expected no buffer of the launch");
  // A convolution of the same 64 numbers.
  auto convolution = [](LibraryCall &c) {
    c = {};
    c.op = "conv2d";
    c.operands = {0, 1, 2};
    c.sizes = {1, 1, 8, 8, 1, 1, 1, 8, 8, 1};
    c.strides = c.dilation = {1, 1};
    c.padding = {0, 0};
  };
  EXPECT_EQ(problemOf(convolution), "");
  auto expectConvolution = [&](const std::function<void(LibraryCall &)> &change,
                               const std::string &part) {
    expect(
        [&](LibraryCall &c) {
          convolution(c);
          change(c);
        },
        part);
  };
  expectConvolution([](LibraryCall &c) { c.sizes[9] = 2; }, "/sizes");
  expectConvolution([](LibraryCall &c) { c.sizes[7] = 7; }, "/sizes/7");
  expectConvolution([](LibraryCall &c) { c.padding[0] = 1; }, "/sizes/7");
  expectConvolution([](LibraryCall &c) { c.sizes[0] = 2; }, "/operands/0");
  expectConvolution([](LibraryCall &c) { c.op = "conv2d_input_grad"; },
                    "/operands/0");
  expectConvolution([](LibraryCall &c) { c.relu = true; }, "/relu");
  expectConvolution([](LibraryCall &c) { c.strides = {0, 1}; }, "/strides/0");
  // No call for a CPU.
  Manifest m = withLibrary().manifest();
  m.target.kind = "cpu";
  EXPECT_NE(artifact::validate(m, 256).message().find(
                "expected it for the target 'cuda' only"),
            std::string::npos);
}

TEST(LibraryManifest, RoundTrip) {
  for (bool isProduct : {true, false}) {
    Manifest m = withLibrary().manifest();
    LibraryCall &call = *m.programs[evaluate].launches[2].library;
    if (isProduct) {
      call.relu = call.tf32 = true;
    } else {
      call = {};
      call.op = "conv2d";
      call.operands = {0, 1, 2};
      call.sizes = {1, 1, 8, 8, 1, 1, 1, 8, 8, 1};
      call.strides = call.dilation = {1, 1};
      call.padding = {0, 0};
    }
    auto text = artifact::toJson(m);
    ASSERT_TRUE(text.ok());
    auto read = artifact::fromJson(*text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, m);
  }
}

} // namespace
