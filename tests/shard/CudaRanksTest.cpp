//===- CudaRanksTest.cpp - sharded steps on GPUs, by an emulated NCCL -----===//
//
// Compiled models on ranks of threads, each with a device of the emulator,
// under several orders of queued work. Losses and parameters are those of the
// same ranks on processors. A wait that is missing, ranks that disagree and a
// rank that does not come are errors, and none of them hangs.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "cuda/NcclApi.h"
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"
#include "ir/Dialect.h"
#include "runtime/comm/PluginPeers.h"
#include "runtime/model/Model.h"
#include "runtime/model/Pieces.h"
#include "tests/runtime/comm/Ranks.h"
#include "tests/shard/Models.h"

#include "mlir/Parser/Parser.h"

#include <atomic>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

using namespace tandem;
using namespace tandem::test;
using artifact::DType;
using artifact::Role;

namespace tandem::cuda::driver {
extern "C" {
#define TANDEM_DRIVER_FUNCTION(member, symbol, parameters)                     \
  CUresult symbol parameters;
#include "cuda/DriverFunctions.def"
#undef TANDEM_DRIVER_FUNCTION
}
} // namespace tandem::cuda::driver
namespace tandem::cuda::nccl {
extern "C" {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  result symbol parameters;
#include "cuda/NcclFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
}
} // namespace tandem::cuda::nccl

namespace {

using Traced = void (*)(Trace &, const Sizes &);

int64_t rows = 12; ///< of a batch

/// The bytes of an artifact.
std::string compiled(Traced model, const std::string &target,
                     const std::string &mesh, const std::string &parallel,
                     const std::string &plan = "") {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  Trace trace("model");
  Sizes sizes;
  sizes.batch = rows;
  model(trace, sizes);
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  CompileOptions options;
  options.threads = 1;
  // Adam makes steps of gradients that are zero but for rounding.
  options.optimizer = model == mlp ? "adamw:lr=0.05" : "momentum:lr=0.1";
  options.target = target;
  options.emulation = target != "cpu";
  options.cubin = "no";
  options.mesh = mesh;
  options.parallel = parallel;
  options.shard = plan;
  std::vector<PhaseTime> times;
  Status status = runPhases(*module, options, times);
  EXPECT_TRUE(status.ok()) << status.message();
  auto writer = emitArtifact(*module, options, times);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  auto bytes = writer->bytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return {bytes->begin(), bytes->end()};
}

Result<runtime::Model> loaded(const std::string &bytes,
                              runtime::Device device) {
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
  if (!reader)
    return reader.status();
  runtime::Options options;
  options.seed = 5;
  options.threads = 1;
  options.device = device;
  return runtime::Model::load(*std::move(reader), options);
}

using Tensors = std::map<std::string, runtime::Tensor>;

/// Inputs of one step, whole.
Tensors inputsOf(const artifact::Manifest &manifest, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensors inputs;
  for (const artifact::Value &value : manifest.values) {
    if (value.role != Role::Input)
      continue;
    auto tensor = runtime::Tensor::zeros(value.dtype, value.shape);
    EXPECT_TRUE(tensor.ok());
    for (int64_t i = 0; i < tensor->elements(); ++i)
      if (value.dtype == DType::I64)
        tensor->mutableData<int64_t>()[i] =
            int64_t(random() % uint64_t(value.high.value_or(4)));
      else
        tensor->mutableData<float>()[i] =
            float(random() % 1000) / 500.0f - 1.0f;
    inputs[value.name] = *tensor;
  }
  return inputs;
}

/// One step; returns its outputs, whole.
Result<Tensors> stepOf(runtime::Model &model, uint64_t seed) {
  Tensors inputs = inputsOf(model.wholeManifest(), seed), outputs;
  std::vector<runtime::Argument> arguments;
  std::vector<runtime::Destination> destinations;
  for (auto &[name, tensor] : inputs) {
    auto piece = runtime::pieceOf(tensor, *model.manifest().findValue(name),
                                  model.communicators());
    if (!piece)
      return std::move(piece).status();
    tensor = *piece;
    arguments.push_back({name, &tensor});
  }
  for (const artifact::Value &value : model.manifest().values)
    if (value.role == Role::Output)
      destinations.push_back({value.name, &outputs[value.name]});
  if (Status status = model.run("step", arguments, destinations); !status)
    return status;
  for (auto &[name, tensor] : outputs) {
    auto whole = runtime::wholeOf(tensor, model.manifest().findOutput(name),
                                  model.communicators());
    if (!whole)
      return std::move(whole).status();
    tensor = *whole;
  }
  return outputs;
}

/// Runs three steps; returns the outputs of each, and what was learned.
std::vector<Tensors> trained(runtime::Model &model) {
  std::vector<Tensors> results;
  for (uint64_t step = 0; step < 3; ++step) {
    auto outputs = stepOf(model, step);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    results.push_back(outputs ? *std::move(outputs) : Tensors());
  }
  for (const artifact::Value &value : model.manifest().values)
    if (value.role == Role::Param || value.role == Role::State) {
      auto whole = model.getWhole(value.name);
      EXPECT_TRUE(whole.ok()) << whole.status().message();
      if (whole)
        results.back()["new " + value.name] = *whole;
    }
  return results;
}

void expectNear(const Tensors &got, const Tensors &wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto &[name, tensor] : wanted) {
    const runtime::Tensor &own = got.at(name);
    ASSERT_TRUE(std::ranges::equal(own.shape(), tensor.shape())) << name;
    if (tensor.dtype() != DType::F32)
      continue;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      ASSERT_NEAR(own.data<float>()[i], tensor.data<float>()[i], 2e-5) << name;
  }
}

/// Runs `body` on ranks that have a device each and the model of `bytes`.
void onRanks(
    int ranks, const std::string &bytes, runtime::DeviceKind kind,
    const std::function<void(runtime::Model &, comm::Communicator &)> &body,
    comm::Milliseconds limit = std::chrono::seconds(60)) {
  comm::testing::withRanks(
      ranks,
      [&](comm::Communicator &borrowed) {
        std::shared_ptr<comm::Communicator> world(&borrowed,
                                                  [](comm::Communicator *) {});
        auto own = loaded(
            bytes,
            {kind, kind == runtime::DeviceKind::Cpu ? 0 : world->rank()});
        ASSERT_TRUE(own.ok()) << own.status().message();
        Status status = own->setCommunicator(world);
        ASSERT_TRUE(status.ok()) << status.message();
        body(*own, *world);
      },
      limit);
}

class CudaRanks : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    tandemEmulatorSetDevices(4);
    cuda::registerDevices();
  }
  void SetUp() override {
    rows = 12;
    tandemEmulatorReset();
    tandemEmulatorSetDevices(4);
  }
  void TearDown() override {
    if (hasErrors)
      return;
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u);
    for (size_t i = 0; const char *text = tandemEmulatorError(i); ++i)
      ADD_FAILURE() << text;
  }

  void expectSame(Traced model, const std::string &mesh,
                  const std::string &parallel, const std::string &plan = "") {
    SCOPED_TRACE(mesh + " " + parallel);
    int ranks = 1;
    for (char c : mesh)
      if (c >= '2' && c <= '9')
        ranks *= c - '0';
    std::string onHost = compiled(model, "cpu", mesh, parallel, plan);
    std::string onDevice = compiled(model, "cuda:sm_90", mesh, parallel, plan);
    std::vector<Tensors> wanted;
    onRanks(ranks, onHost, runtime::DeviceKind::Cpu,
            [&](runtime::Model &own, comm::Communicator &world) {
              auto results = trained(own);
              if (world.rank() == 0)
                wanted = std::move(results);
            });
    for (const char *policy : policies) {
      SCOPED_TRACE(policy);
      ASSERT_EQ(tandemEmulatorSetPolicy(policy), 0);
      onRanks(ranks, onDevice, runtime::DeviceKind::CudaEmu,
              [&](runtime::Model &own, comm::Communicator & /*world*/) {
                std::vector<Tensors> got = trained(own);
                for (size_t step = 0; step < wanted.size(); ++step)
                  expectNear(got[step], wanted[step]);
              });
    }
  }

  std::vector<const char *> policies = {"eager", "lazy", "random:1"};
  bool hasErrors = false; ///< the test looked at them
};

TEST_F(CudaRanks, X02_DataParallelStepsAreThoseOfProcessors) {
  expectSame(mlp, "data=2", "ddp");
  expectSame(mlp, "data=4", "zero1");
  expectSame(mlp, "data=2", "zero2");
  expectSame(mlp, "data=3", "fsdp");
}

TEST_F(CudaRanks, X02_X03_ADecoderIsThatOfProcessors) {
  policies = {"others-first"};
  std::string plan = ::testing::TempDir() + "cuda-ranks-" +
                     std::to_string(::getpid()) + ".json";
  std::ofstream(plan) << R"({
    "(q|k|v|up)\\.w": ["tensor", null], "(q|k|v|up)\\.bias": ["tensor"],
    "(out|down)\\.w": [null, "tensor"]})";
  expectSame(decoder, "tensor=2", "tp", plan);
  expectSame(decoder, "data=2,tensor=2", "fsdp+tp", plan);
  std::remove(plan.c_str());
}

/// Rows that do not divide, and a rank that has none.
TEST_F(CudaRanks, X02_UnevenRows) {
  rows = 5;
  expectSame(mlp, "data=4", "fsdp");
}

/// Ranks of communicators of NCCL that the program has: what the host says goes
/// over these, too.
TEST_F(CudaRanks, X17_CommunicatorsOfTheProgram) {
  std::string bytes = compiled(mlp, "cuda:sm_90", "data=2", "zero2");
  std::vector<Tensors> wanted;
  onRanks(2, bytes, runtime::DeviceKind::CudaEmu,
          [&](runtime::Model &own, comm::Communicator &world) {
            auto results = trained(own);
            if (world.rank() == 0)
              wanted = std::move(results);
          });
  ::setenv("TANDEM_NCCL_DEVICE", "cuda-emu", 1);
  cuda::nccl::ncclUniqueId id;
  ASSERT_EQ(cuda::nccl::ncclGetUniqueId(&id), cuda::nccl::ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      auto own = loaded(bytes, {runtime::DeviceKind::CudaEmu, rank});
      ASSERT_TRUE(own.ok()) << own.status().message();
      cuda::driver::CUcontext context = nullptr;
      ASSERT_EQ(cuda::driver::cuDevicePrimaryCtxRetain(&context, rank),
                cuda::driver::CUDA_SUCCESS);
      ASSERT_EQ(cuda::driver::cuCtxSetCurrent(context),
                cuda::driver::CUDA_SUCCESS);
      cuda::nccl::ncclComm_t comm = nullptr;
      ASSERT_EQ(cuda::nccl::ncclCommInitRankConfig(&comm, 2, id, rank, nullptr),
                cuda::nccl::ncclSuccess);
      {
        auto peers =
            comm::openPeers(TANDEM_NCCL, &comm, std::chrono::seconds(60));
        ASSERT_TRUE(peers.ok()) << peers.status().message();
        EXPECT_EQ((*peers)->rank(), rank);
        Status status = own->setCommunicator(comm::makePeerCommunicator(
            *std::move(peers), std::chrono::seconds(60)));
        ASSERT_TRUE(status.ok()) << status.message();
        std::vector<Tensors> got = trained(*own);
        for (size_t step = 0; step < wanted.size(); ++step)
          expectNear(got[step], wanted[step]);
        own = Status::failed("ended"); // and what the model has of it
      }
      // It is the program's still.
      EXPECT_EQ(cuda::nccl::ncclCommDestroy(comm), cuda::nccl::ncclSuccess);
      cuda::driver::cuDevicePrimaryCtxRelease_v2(rank);
    });
  for (std::thread &thread : threads)
    thread.join();
  ::unsetenv("TANDEM_NCCL_DEVICE");
}

/// A rank that does not come is an error of those that wait for it, on the
/// device that they wait with, and later calls fail, too.
TEST_F(CudaRanks, X15_ARankThatDoesNotCome) {
  std::string bytes = compiled(mlp, "cuda:sm_90", "data=2", "ddp");
  std::atomic<int> left{2};
  onRanks(
      2, bytes, runtime::DeviceKind::CudaEmu,
      [&](runtime::Model &own, comm::Communicator &world) {
        ASSERT_TRUE(stepOf(own, 0).ok());
        if (world.rank() == 0) {
          Status status = stepOf(own, 1).status();
          EXPECT_EQ(status.code(), Code::Failed) << status.message();
          EXPECT_NE(
              status.message().find("rank 0 has waited for others for 1000 ms"),
              std::string::npos)
              << status.message();
          EXPECT_NE(status.message().find("Models.cpp"), std::string::npos)
              << status.message();
          EXPECT_FALSE(stepOf(own, 2).ok());
        }
        --left;
        while (left) // rank 1 is there, but does nothing
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      },
      std::chrono::seconds(1));
}

} // namespace
