//===- UnevenRanksTest.cpp - compiled steps where sizes do not divide -----===//
//
// Compiled models on ranks of threads: of 5 rows over 4 ranks these have 2, 2,
// 1 and none. What lies behind a rank's last row is no number, and no index.
// Losses, outputs and parameters are those of one process.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "ir/Dialect.h"
#include "runtime/model/Model.h"
#include "runtime/model/Pieces.h"
#include "tests/runtime/comm/Ranks.h"
#include "tests/shard/Models.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tandem;
using namespace tandem::test;
using artifact::DType;
using artifact::Role;

namespace {

using Traced = void (*)(Trace &, const Sizes &);

/// The bytes of an artifact.
std::string compiled(Traced model, const Sizes &sizes, const std::string &mesh,
                     const std::string &parallel,
                     const std::string &optimizer = "momentum:lr=0.1") {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  Trace trace("model");
  model(trace, sizes);
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  CompileOptions options;
  options.threads = 1;
  options.optimizer = optimizer;
  options.mesh = mesh;
  options.parallel = parallel;
  std::vector<PhaseTime> times;
  Status status = runPhases(*module, options, times);
  EXPECT_TRUE(status.ok()) << status.message();
  auto writer = emitArtifact(*module, options, times);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  auto bytes = writer->bytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return {bytes->begin(), bytes->end()};
}

Result<runtime::Model> loaded(const std::string &bytes) {
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
  if (!reader)
    return reader.status();
  runtime::Options options;
  options.seed = 5;
  options.threads = 1;
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
            value.ignored && random() % 3 == 0
                ? *value.ignored
                : int64_t(random() % uint64_t(value.high.value_or(4)));
      else
        tensor->mutableData<float>()[i] =
            float(random() % 1000) / 500.0f - 1.0f;
    inputs[value.name] = *tensor;
  }
  return inputs;
}

/// A rank's piece, and behind its end what nobody may use.
runtime::Tensor pieceWithJunk(const runtime::Model &model,
                              const std::string &name,
                              const runtime::Tensor &whole) {
  const comm::MeshCommunicators &ranks = *model.communicators();
  const artifact::Value &value = *model.manifest().findValue(name);
  comm::Shard shard = comm::shardOf(ranks.mesh(), value, ranks.world().rank());
  auto piece = runtime::Tensor::zeros(value.dtype, value.shape);
  EXPECT_TRUE(piece.ok());
  for (int64_t i = 0; i < piece->elements(); ++i)
    if (value.dtype == DType::I64)
      piece->mutableData<int64_t>()[i] = i % 2 ? int64_t(1) << 40 : -3;
    else
      piece->mutableData<float>()[i] = i % 2 ? NAN : INFINITY;
  comm::takePiece(shard, whole.data<std::byte>(),
                  piece->mutableData<std::byte>(),
                  artifact::byteSize(value.dtype));
  return *piece;
}

/// Runs three steps; returns the outputs of each, whole, and at the end what
/// was learned.
std::vector<Tensors> trained(runtime::Model &model) {
  std::vector<Tensors> results;
  for (uint64_t step = 0; step < 3; ++step) {
    Tensors inputs = inputsOf(model.wholeManifest(), step), outputs;
    std::vector<runtime::Argument> arguments;
    std::vector<runtime::Destination> destinations;
    for (auto &[name, tensor] : inputs) {
      if (model.communicators())
        tensor = pieceWithJunk(model, name, tensor);
      arguments.push_back({name, &tensor});
    }
    for (const artifact::Value &value : model.manifest().values)
      if (value.role == Role::Output)
        destinations.push_back({value.name, &outputs[value.name]});
    Status status = model.run("step", arguments, destinations);
    EXPECT_TRUE(status.ok()) << status.message();
    for (auto &[name, tensor] : outputs) {
      auto whole = runtime::wholeOf(tensor, model.manifest().findOutput(name),
                                    model.communicators());
      EXPECT_TRUE(whole.ok()) << whole.status().message();
      tensor = *whole;
    }
    results.push_back(std::move(outputs));
  }
  for (const artifact::Value &value : model.manifest().values)
    if (value.role == Role::Param || value.role == Role::State) {
      auto whole = model.getWhole(value.name);
      EXPECT_TRUE(whole.ok()) << whole.status().message();
      results.back()["new " + value.name] = *whole;
    }
  return results;
}

void expectNear(const Tensors &got, const Tensors &wanted, int64_t rank) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto &[name, tensor] : wanted) {
    const runtime::Tensor &own = got.at(name);
    ASSERT_TRUE(std::ranges::equal(own.shape(), tensor.shape())) << name;
    if (tensor.dtype() != DType::F32)
      continue;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      ASSERT_NEAR(own.data<float>()[i], tensor.data<float>()[i], 2e-4)
          << name << " of rank " << rank;
  }
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
    std::vector<Tensors> wanted = trained(*one);
    std::vector<std::pair<const char *, const char *>> plans = {
        {"data=4", model == mlp ? "zero1" : "ddp"},
        {"data=3", model == decoder ? "fsdp" : "zero2"}};
    if (model == convolutions || model == dropouts)
      plans.pop_back();
    for (auto [mesh, parallel] : plans) {
      std::string bytes = compiled(model, sizes, mesh, parallel);
      SCOPED_TRACE(std::string(mesh) + " " + parallel);
      comm::testing::withRanks(
          mesh[5] - '0', [&](comm::Communicator &borrowed) {
            std::shared_ptr<comm::Communicator> world(
                &borrowed, [](comm::Communicator *) {});
            auto own = loaded(bytes);
            ASSERT_TRUE(own.ok()) << own.status().message();
            Status status = own->setCommunicator(world);
            ASSERT_TRUE(status.ok()) << status.message();
            std::vector<Tensors> got = trained(*own);
            for (size_t step = 0; step < wanted.size(); ++step)
              expectNear(got[step], wanted[step], world->rank());
          });
    }
  }
}

/// A rank passes what all ranks pass: not fewer rows, and not all of them.
TEST(UnevenRanks, X02_OtherShapesAreErrors) {
  Sizes sizes;
  sizes.batch = 5;
  std::string bytes = compiled(mlp, sizes, "data=4", "ddp");
  comm::testing::withRanks(4, [&](comm::Communicator &borrowed) {
    std::shared_ptr<comm::Communicator> world(&borrowed,
                                              [](comm::Communicator *) {});
    auto model = loaded(bytes);
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_TRUE(model->setCommunicator(world).ok());
    const artifact::Value &x = *model->manifest().findValue("x");
    EXPECT_EQ(x.shape, (std::vector<int64_t>{2, 6}));
    EXPECT_EQ(x.whole, (std::vector<int64_t>{5, 6}));
    for (int64_t rows : {0, 1, 5, 8}) {
      auto other =
          runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{rows, 6});
      auto labels = runtime::Tensor::zeros(DType::I64, std::vector<int64_t>{2});
      std::vector<runtime::Argument> arguments = {{"x", &*other},
                                                  {"labels", &*labels}};
      EXPECT_EQ(model->run("step", arguments, {}).code(), Code::Usage);
    }
    // What a rank has is looked at, and nothing else.
    auto rows = runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{2, 6});
    auto labels = runtime::Tensor::zeros(DType::I64, std::vector<int64_t>{2});
    labels->mutableData<int64_t>()[1] = 99;
    std::vector<runtime::Argument> arguments = {{"x", &*rows},
                                                {"labels", &*labels}};
    if (world->rank() < 2) {
      Status status = model->run("step", arguments, {});
      EXPECT_EQ(status.code(), Code::Usage);
      EXPECT_NE(status.message().find("row 1 is 99"), std::string::npos)
          << status.message();
    }
    auto w = runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{9, 6});
    EXPECT_EQ(model->setWhole("up.w", *w).code(), Code::Usage);
  });
}

/// Calls forward and backward, with a cotangent of "y" or without one; returns
/// the gradients that are defined, whole.
Tensors gradientsOf(runtime::Model &model, const runtime::Tensor &x,
                    const runtime::Tensor *dy) {
  auto piece = model.communicators() ? pieceWithJunk(model, "x", x) : x;
  std::vector<runtime::Argument> arguments = {{"x", &piece}};
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
  comm::testing::withRanks(
      3,
      [&](comm::Communicator &borrowed) {
        std::shared_ptr<comm::Communicator> world(&borrowed,
                                                  [](comm::Communicator *) {});
        auto own = loaded(bytes);
        ASSERT_TRUE(own.ok()) << own.status().message();
        ASSERT_TRUE(own->setCommunicator(world).ok());
        auto piece =
            runtime::Tensor::zeros(DType::F32, std::vector<int64_t>{2, 4});
        int rank = world->rank();
        if (rank < 2)
          std::copy_n(dy->data<float>() + rank * 8, 8,
                      piece->mutableData<float>());
        Tensors got =
            gradientsOf(*own, inputs["x"], rank < 2 ? &*piece : nullptr);
        expectNear(got, wanted, rank);
        // Nobody defines one: there is nothing to do.
        EXPECT_TRUE(gradientsOf(*own, inputs["x"], nullptr).empty());
      },
      std::chrono::seconds(60));
}

} // namespace
