//===- Trained.cpp - compiled models that ranks of threads train ----------===//
#include "tests/shard/Trained.h"

#include "ir/Dialect.h"
#include "runtime/model/Pieces.h"
#include "tests/runtime/comm/Ranks.h"
#include "tests/support/TestKernels.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <random>

using namespace tandem;
using artifact::DType;
using artifact::Role;

std::string test::compiled(Traced model, const Sizes &sizes,
                           CompileOptions options) {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  Trace trace("model");
  model(trace, sizes);
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  options.threads = 1;
  auto kernels = testKernels();
  options.kernels = kernels.get();
  std::vector<PhaseTime> times;
  Status status = runPhases(*module, options, times);
  EXPECT_TRUE(status.ok()) << status.message();
  auto writer = emitArtifact(*module, options, times);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  auto bytes = writer->bytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return {bytes->begin(), bytes->end()};
}

Result<runtime::Model> test::loaded(const std::string &bytes,
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

test::Tensors test::inputsOf(const artifact::Manifest &manifest,
                             uint64_t seed) {
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

Result<runtime::Tensor> test::cut(const runtime::Model &model,
                                  const artifact::Value &input,
                                  const runtime::Tensor &whole) {
  return runtime::pieceOf(whole, input, model.communicators());
}

Result<test::Tensors> test::stepOf(runtime::Model &model, uint64_t seed,
                                   Cut *cutter) {
  Tensors inputs = inputsOf(model.wholeManifest(), seed), outputs;
  std::vector<runtime::Argument> arguments;
  std::vector<runtime::Destination> destinations;
  for (auto &[name, tensor] : inputs) {
    auto piece = cutter(model, *model.manifest().findValue(name), tensor);
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

std::vector<test::Tensors> test::trained(runtime::Model &model, Cut *cutter) {
  std::vector<Tensors> results;
  for (uint64_t step = 0; step < 3; ++step) {
    auto outputs = stepOf(model, step, cutter);
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

void test::expectNear(const Tensors &got, const Tensors &wanted,
                      double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto &[name, tensor] : wanted) {
    const runtime::Tensor &own = got.at(name);
    ASSERT_TRUE(std::ranges::equal(own.shape(), tensor.shape())) << name;
    if (tensor.dtype() != DType::F32)
      continue;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      ASSERT_NEAR(own.data<float>()[i], tensor.data<float>()[i], tolerance)
          << name;
  }
}

void test::expectNear(const std::vector<Tensors> &got,
                      const std::vector<Tensors> &wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t step = 0; step < wanted.size(); ++step)
    expectNear(got[step], wanted[step], tolerance);
}

void test::onRanks(
    int ranks, const std::string &bytes, runtime::DeviceKind kind,
    const std::function<void(runtime::Model &, comm::Communicator &)> &body,
    std::chrono::milliseconds limit) {
  comm::testing::withRanks(
      ranks,
      [&](comm::Communicator &borrowed) {
        std::shared_ptr<comm::Communicator> world(&borrowed,
                                                  [](comm::Communicator *) {});
        SCOPED_TRACE("rank " + std::to_string(world->rank()));
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
