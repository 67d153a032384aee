//===- UnevenRanksTest.cpp - compiled steps where sizes do not divide -----===//
//
// Compiled models on ranks of threads: of 5 rows over 4 ranks these have 2, 2,
// 1 and none. What lies behind a rank's last row is no number, and no index.
// Losses, outputs and parameters are those of one process.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Pieces.h"
#include "tests/shard/Trained.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using artifact::DType;

namespace {

constexpr double tolerance = 2e-4;

std::string compiled(Traced model, const Sizes &sizes, const std::string &mesh,
                     const std::string &parallel,
                     const std::string &optimizer = "momentum:lr=0.1") {
  CompileOptions options;
  options.optimizer = optimizer;
  options.mesh = mesh;
  options.parallel = parallel;
  return test::compiled(model, sizes, options);
}

/// A rank's piece, and behind its end what nobody may use.
Result<runtime::Tensor> cutWithJunk(const runtime::Model &model,
                                    const artifact::Value &value,
                                    const runtime::Tensor &whole) {
  if (!model.communicators())
    return whole;
  const comm::MeshCommunicators &ranks = *model.communicators();
  comm::Shard shard = comm::shardOf(ranks.mesh(), value, ranks.world().rank());
  auto piece = runtime::Tensor::zeros(value.dtype, value.shape);
  if (!piece)
    return piece;
  for (int64_t i = 0; i < piece->elements(); ++i)
    if (value.dtype == DType::I64)
      piece->mutableData<int64_t>()[i] = i % 2 ? int64_t(1) << 40 : -3;
    else
      piece->mutableData<float>()[i] = i % 2 ? NAN : INFINITY;
  comm::takePiece(shard, whole.data<std::byte>(),
                  piece->mutableData<std::byte>(),
                  artifact::byteSize(value.dtype));
  return piece;
}

TEST(UnevenRanks, X02_X05_CompiledStepsAreThoseOfOneProcess) {
  Sizes sizes;
  sizes.batch = 5;
  sizes.width = 6;
  sizes.heads = 3;
  sizes.vocabulary = 7;
  for (Traced model : {mlp, decoder, convolutions, dropouts}) {
    auto one = loaded(compiled(model, sizes, "", ""));
    ASSERT_TRUE(one.ok()) << one.status().message();
    std::vector<Tensors> wanted = trained(*one, cutWithJunk);
    std::vector<std::pair<const char *, const char *>> plans = {
        {"data=4", model == mlp ? "zero1" : "ddp"},
        {"data=3", model == decoder ? "fsdp" : "zero2"}};
    if (model == convolutions || model == dropouts)
      plans.pop_back();
    for (auto [mesh, parallel] : plans) {
      std::string bytes = compiled(model, sizes, mesh, parallel);
      SCOPED_TRACE(std::string(mesh) + " " + parallel);
      onRanks(mesh[5] - '0', bytes, runtime::DeviceKind::Cpu,
              [&](runtime::Model &own, comm::Communicator & /*world*/) {
                expectNear(trained(own, cutWithJunk), wanted, tolerance);
              });
    }
  }
}

/// A rank passes what all ranks pass: not fewer rows, and not all of them.
TEST(UnevenRanks, X02_OtherShapesAreErrors) {
  Sizes sizes;
  sizes.batch = 5;
  std::string bytes = compiled(mlp, sizes, "data=4", "ddp");
  onRanks(
      4, bytes, runtime::DeviceKind::Cpu,
      [&](runtime::Model &model, comm::Communicator &world) {
        const artifact::Value &x = *model.manifest().findValue("x");
        EXPECT_EQ(x.shape, (std::vector<int64_t>{2, 6}));
        EXPECT_EQ(x.whole, (std::vector<int64_t>{5, 6}));
        for (int64_t rows : {0, 1, 5, 8}) {
          auto other =
              runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{rows, 6});
          auto labels =
              runtime::Tensor::zeros(DType::I64, std::vector<int64_t>{2});
          std::vector<runtime::Argument> arguments = {{"x", &*other},
                                                      {"labels", &*labels}};
          EXPECT_EQ(model.run("step", arguments, {}).code(), Code::Usage);
        }
        // What a rank has is looked at, and nothing else.
        auto rows =
            runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{2, 6});
        auto labels =
            runtime::Tensor::zeros(DType::I64, std::vector<int64_t>{2});
        labels->mutableData<int64_t>()[1] = 99;
        std::vector<runtime::Argument> arguments = {{"x", &*rows},
                                                    {"labels", &*labels}};
        if (world.rank() < 2) {
          Status status = model.run("step", arguments, {});
          EXPECT_EQ(status.code(), Code::Usage);
          EXPECT_NE(status.message().find("row 1 is 99"), std::string::npos)
              << status.message();
        }
        auto w = runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{9, 6});
        EXPECT_EQ(model.setWhole("up.w", *w).code(), Code::Usage);
      });
}

/// Calls forward and backward, with a cotangent of "y" or without one; returns
/// the gradients that are defined, whole.
Tensors gradientsOf(runtime::Model &model, const runtime::Tensor &x,
                    const runtime::Tensor *dy) {
  auto piece = cutWithJunk(model, *model.manifest().findValue("x"), x);
  EXPECT_TRUE(piece.ok());
  std::vector<runtime::Argument> arguments = {{"x", &*piece}};
  auto context = model.forward(arguments, {});
  EXPECT_TRUE(context.ok()) << context.status().message();
  Tensors grads;
  std::vector<runtime::Destination> destinations;
  for (const artifact::Value &value : model.manifest().values)
    if (value.requiresGrad)
      destinations.push_back({value.name, &grads[value.name]});
  std::vector<runtime::Argument> cotangents = {{"y", dy}, {"total", nullptr}};
  Status status = model.backward(*context, cotangents, destinations);
  EXPECT_TRUE(status.ok()) << status.message();
  for (auto &[name, grad] : grads) {
    if (!grad.defined())
      continue;
    auto whole = runtime::wholeOf(grad, model.manifest().findValue(name),
                                  model.communicators());
    EXPECT_TRUE(whole.ok()) << whole.status().message();
    grad = *whole;
  }
  std::erase_if(grads, [](const auto &of) { return !of.second.defined(); });
  return grads;
}

/// The branch that leads to "y" is taken on the first two of three ranks, whose
/// rows it has; the third one's count nothing, and nobody waits.
TEST(UnevenRanks, X10_CotangentsThatSomeRanksDefine) {
  Sizes sizes;
  sizes.batch = 5;
  auto one = loaded(compiled(outputs, sizes, "", "", ""));
  ASSERT_TRUE(one.ok()) << one.status().message();
  Tensors inputs = inputsOf(one->wholeManifest(), 3);
  auto dy = runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{5, 4});
  for (int64_t i = 0; i < 16; ++i) // of 2 and 2 rows
    dy->mutableData<float>()[i] = float(i) - 7.5f;
  Tensors wanted = gradientsOf(*one, inputs["x"], &*dy);
  EXPECT_EQ(wanted.size(), 5u);
  std::string bytes = compiled(outputs, sizes, "data=3", "ddp", "");
  onRanks(3, bytes, runtime::DeviceKind::Cpu,
          [&](runtime::Model &own, comm::Communicator &world) {
            auto piece =
                runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{2, 4});
            int rank = world.rank();
            if (rank < 2)
              std::copy_n(dy->data<float>() + rank * 8, 8,
                          piece->mutableData<float>());
            Tensors got =
                gradientsOf(own, inputs["x"], rank < 2 ? &*piece : nullptr);
            expectNear(got, wanted, tolerance);
            // Nobody defines one: there is nothing to do.
            EXPECT_TRUE(gradientsOf(own, inputs["x"], nullptr).empty());
          });
}

} // namespace
