//===- StageRuns.cpp - models in stages, trained over threads -------------===//
#include "tests/shard/StageRuns.h"

#include "compiler/Compile.h"
#include "ir/Dialect.h"
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/ThreadPeers.h"
#include "runtime/pipeline/Forward.h"
#include "runtime/pipeline/PlannedMemory.h"
#include "tests/support/TestKernels.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

/// A file that is removed again.
struct PlanFile {
  explicit PlanFile(const std::string &text) {
    if (text.empty())
      return;
    path = ::testing::TempDir() + "pipeline-plan-" +
           std::to_string(::getpid()) + ".json";
    std::ofstream(path) << text;
  }
  PlanFile(const PlanFile &) = delete;
  ~PlanFile() {
    if (!path.empty())
      ::unlink(path.c_str());
  }
  std::string path;
};

} // namespace

Compilation test::compiled(const Program &program, const Way &way) {
  Compilation made;
  Trace trace("model");
  program(trace, {.batch = way.batch});
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    made.diagnostics += diagnostic.str() + "\n";
    return success();
  });
  context.loadDialect<TandemDialect>();
  auto module = parseSourceString<ModuleOp>(*text, &context);
  EXPECT_TRUE(module);
  CompileOptions options;
  auto kernels = testKernels();
  options.kernels = kernels.get();
  options.threads = 1;
  options.effort = 0;
  options.optimizer = way.optimizer;
  options.accumulate = true;
  options.clip = way.clip;
  options.lossScale = way.lossScale;
  options.lrSchedule = way.schedule;
  options.ema = way.ema;
  options.swa = way.swa;
  options.groups = way.groups;
  PlanFile plan(way.plan);
  options.shard = plan.path;
  if (way.ranks > 1) {
    options.mesh = "pipe=" + std::to_string(way.ranks) +
                   (way.axes.empty() ? "" : "," + way.axes);
    options.parallel = "pp:" + std::to_string(way.virtualStages) +
                       (way.parallel.empty() ? "" : "+" + way.parallel);
  }
  made.status = checkOptions(options);
  if (!made.status)
    return made;
  std::vector<PhaseTime> times;
  auto modules = runTargets(std::move(module), options, times);
  made.status = modules.status();
  for (size_t i = 0; made.status && i < modules->size(); ++i) {
    auto writer = emitArtifact(*(*modules)[i], options, times);
    EXPECT_TRUE(writer) << writer.status().message();
    auto bytes = writer->bytes();
    EXPECT_TRUE(bytes) << bytes.status().message();
    auto reader =
        artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
    EXPECT_TRUE(reader) << reader.status().message();
    made.readers.push_back(*reader);
  }
  return made;
}

test::Batch::Batch(std::vector<artifact::Value> of, int64_t number)
    : inputs(std::move(of)) {
  values.reserve(inputs.size());
  for (const artifact::Value &input : inputs) {
    auto made = runtime::Tensor::zeros(input.dtype, input.shape);
    EXPECT_TRUE(made) << made.status().message();
    for (int64_t e = 0; e < made->elements(); ++e)
      if (input.dtype == artifact::DType::F32)
        made->mutableData<float>()[e] =
            float((e * 7 + number * 5) % 11) / 11 - 0.4f;
      else
        made->mutableData<int64_t>()[e] = (e + number) % 4;
    values.push_back(*made);
    arguments.emplace_back(input.name, &values.back());
  }
}

Result<pipeline::Pipeline>
test::pipelineOf(const Readers &stages,
                 std::shared_ptr<comm::Communicator> world) {
  runtime::Options options;
  options.threads = 1;
  std::vector<runtime::Model> models;
  for (int64_t stage :
       pipeline::stagesOf(stages[0].manifest(), world->rank())) {
    auto model = runtime::Model::load(stages[size_t(stage)], options);
    if (!model)
      return std::move(model).status();
    models.push_back(*model);
  }
  return pipeline::Pipeline::make(std::move(models), std::move(world));
}

namespace {

void collect(const runtime::Model &model, Trained &to) {
  for (const artifact::Value &value : model.manifest().values) {
    if (value.role != artifact::Role::Param &&
        value.role != artifact::Role::State)
      continue;
    auto got = model.getWhole(value.name);
    ASSERT_TRUE(got) << got.status().message();
    std::vector<double> elements;
    for (int64_t e = 0; e < got->elements(); ++e)
      elements.push_back(got->at(e));
    if (value.role == artifact::Role::Param)
      ++to.havers[value.name];
    auto [place, isNew] = to.variables.emplace(value.name, elements);
    if (!isNew)
      EXPECT_EQ(place->second, elements) << value.name << " differs on ranks";
  }
}

std::vector<artifact::Value> inputsOf(const artifact::Manifest &manifest) {
  std::vector<artifact::Value> inputs;
  for (const artifact::Value &value : manifest.values)
    if (value.role == artifact::Role::Input)
      inputs.push_back(value);
  return inputs;
}

/// One call of `evaluate`, by what gives its outputs.
void keep(const artifact::Slot &slot, const runtime::Tensor &tensor,
          Trained &to) {
  std::vector<double> elements;
  for (int64_t e = 0; e < tensor.elements(); ++e)
    elements.push_back(tensor.at(e));
  to.evaluated[slot.name] = std::move(elements);
  to.outputs[slot.name] = slot;
}

void evaluateAlone(runtime::Model &model, Trained &to) {
  const artifact::Manifest &manifest = model.manifest();
  std::vector<artifact::Slot> slots =
      artifact::outputsOf(*manifest.findProgram("evaluate"));
  std::vector<runtime::Tensor> tensors(slots.size());
  std::vector<runtime::Destination> outputs;
  for (size_t i = 0; i < slots.size(); ++i)
    outputs.push_back({slots[i].name, &tensors[i]});
  Batch batch(inputsOf(manifest), 3);
  Status status = model.run("evaluate", batch.arguments, outputs);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < slots.size(); ++i)
    keep(slots[i], tensors[i], to);
}

/// All outputs at once, and then each by itself.
void evaluateStages(pipeline::Pipeline &stages, const Readers &readers,
                    Trained &to) {
  std::vector<artifact::Manifest> manifests;
  for (const artifact::ArtifactReader &reader : readers)
    manifests.push_back(reader.manifest());
  auto whole = pipeline::wholeEvaluate(manifests);
  ASSERT_TRUE(whole) << whole.status().message();
  const std::vector<artifact::Slot> &slots = whole->programs[0].results;
  std::vector<std::string> names;
  for (const artifact::Slot &slot : slots)
    names.push_back(slot.name);
  Batch batch(manifests[0].pipeline->inputs, 3);
  auto run = [&](const std::vector<std::string> &wanted,
                 std::span<const runtime::Argument> inputs,
                 std::vector<runtime::Tensor> &got) {
    auto forward = pipeline::Forward::make(stages, manifests, wanted);
    ASSERT_TRUE(forward) << forward.status().message();
    for (int i = 0; i < 2; ++i) {
      auto outputs = forward->run(inputs);
      ASSERT_TRUE(outputs) << outputs.status().message();
      got.assign(outputs->begin(), outputs->end());
    }
  };
  std::vector<runtime::Tensor> got;
  run(names, batch.arguments, got);
  ASSERT_EQ(got.size(), slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    keep(slots[i], got[i], to);
  for (const artifact::Slot &slot : slots) {
    // Inputs that it does not follow from are not given.
    std::vector<runtime::Argument> needed;
    for (const runtime::Argument &argument : batch.arguments)
      if (llvm::is_contained(*slot.inputs, argument.name))
        needed.push_back(argument);
    run({slot.name}, needed, got);
    ASSERT_EQ(got.size(), 1u);
    std::vector<double> all = to.evaluated[slot.name];
    keep(slot, got[0], to);
    EXPECT_EQ(to.evaluated[slot.name], all) << slot.name << " by itself";
  }
}

} // namespace

Trained test::alone(const artifact::ArtifactReader &reader, int64_t updates,
                    int64_t batches) {
  Trained result;
  runtime::Options options;
  options.threads = 1;
  auto model = runtime::Model::load(reader, options);
  EXPECT_TRUE(model) << model.status().message();
  const artifact::Manifest &manifest = model->manifest();
  auto loss = runtime::Tensor::zeros(artifact::DType::F32, {});
  for (int64_t i = 0; i < updates * batches + 1; ++i) {
    Batch batch(inputsOf(manifest), i);
    runtime::Destination to[] = {{manifest.loss, &*loss}};
    bool isLast = (i + 1) % batches == 0;
    Status status =
        model->run(isLast ? "step" : "accumulate", batch.arguments, to);
    EXPECT_TRUE(status.ok()) << status.message();
    result.losses.push_back(loss->at(0));
  }
  collect(*model, result);
  evaluateAlone(*model, result);
  return result;
}

Trained test::onRanks(const Readers &stages, int64_t updates, int64_t batches) {
  const artifact::Manifest &first = stages[0].manifest();
  auto ranks = int(pipeline::ranksOf(first));
  std::vector<Trained> results{size_t(ranks)};
  auto peers = comm::makeThreadPeers(ranks);
  auto train = [&](int rank) {
    std::shared_ptr<comm::Communicator> world = comm::makePeerCommunicator(
        std::move(peers[size_t(rank)]), std::chrono::seconds(60));
    auto made = pipelineOf(stages, world);
    ASSERT_TRUE(made) << made.status().message();
    const auto &inputs = made->models()[0].manifest().pipeline->inputs;
    Trained &result = results[size_t(rank)];
    std::optional<Batch> batch;
    int64_t done = 0;
    auto give = [&](int64_t i) -> Result<std::span<const runtime::Argument>> {
      batch.emplace(inputs, done + i);
      return std::span<const runtime::Argument>(batch->arguments);
    };
    for (int64_t i = 0; i <= updates; ++i) {
      std::vector<double> losses;
      Status status =
          made->train(i < updates ? batches : 1, i < updates, give, losses);
      ASSERT_TRUE(status.ok()) << status.message();
      done += int64_t(losses.size());
      result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    }
    std::vector<artifact::Manifest> manifests;
    for (const artifact::ArtifactReader &reader : stages)
      manifests.push_back(reader.manifest());
    int64_t place = rank / comm::ranksOf(first.mesh);
    auto planned = pipeline::plannedMemory(manifests, place, batches, 1);
    ASSERT_TRUE(planned) << planned.status().message();
    EXPECT_EQ(made->peak(), planned->bytes) << "planned on rank " << rank;
    for (const runtime::Model &model : made->models()) {
      collect(model, result);
      int64_t stage = model.manifest().pipeline->stage;
      result.mostLive[stage] = made->mostLive(stage);
    }
    evaluateStages(*made, stages, result);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(train, rank);
  for (std::thread &thread : threads)
    thread.join();
  Trained all = results[0];
  for (size_t rank = 1; rank < results.size(); ++rank) {
    EXPECT_EQ(results[rank].losses, all.losses) << "on rank " << rank;
    EXPECT_EQ(results[rank].evaluated, all.evaluated) << "on rank " << rank;
    all.mostLive.merge(results[rank].mostLive);
    for (const auto &[name, count] : results[rank].havers)
      all.havers[name] += count;
    for (const auto &[name, elements] : results[rank].variables) {
      auto [place, isNew] = all.variables.emplace(name, elements);
      if (!isNew)
        EXPECT_EQ(place->second, elements) << name << " differs on ranks";
    }
  }
  return all;
}
