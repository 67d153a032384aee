//===- CudaRanksTest.cpp - sharded steps on GPUs, by an emulated NCCL -----===//
//
// Compiled models on ranks of threads, each with a device of the emulator,
// under several orders of queued work. Losses and parameters are those of the
// same ranks on processors. A wait that is missing, ranks that disagree and a
// rank that does not come are errors, and none of them hangs.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"
#include "cuda/emulator/DriverEntries.h"
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/PluginPeers.h"
#include "tests/cuda/emulator/NcclCalls.h"
#include "tests/shard/Trained.h"

#include <atomic>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double tolerance = 2e-5;

int64_t rows = 12; ///< of a batch

std::string compiled(Traced model, const std::string &target,
                     const std::string &mesh, const std::string &parallel,
                     const std::string &plan = "") {
  Sizes sizes;
  sizes.batch = rows;
  CompileOptions options;
  // Adam makes steps of gradients that are zero but for rounding.
  options.optimizer = model == mlp ? "adamw:lr=0.05" : "momentum:lr=0.1";
  options.target = target;
  options.emulation = target != "cpu";
  options.cubin = "no";
  options.mesh = mesh;
  options.parallel = parallel;
  options.shard = plan;
  return test::compiled(model, sizes, options);
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
                expectNear(trained(own), wanted, tolerance);
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
        expectNear(trained(*own), wanted, tolerance);
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
