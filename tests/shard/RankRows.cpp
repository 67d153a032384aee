//===- RankRows.cpp - rows of group X, whatever connects the ranks --------===//
#include "tests/shard/RankRows.h"

#include "runtime/artifact/PlannedMemory.h"
#include "runtime/model/Pieces.h"
#include "runtime/pipeline/PlannedMemory.h"
#include "tests/runtime/comm/RandomCollectives.h"
#include "tests/shard/StageRuns.h"
#include "tests/shard/Trained.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <unistd.h>

using namespace tandem;
using namespace tandem::test;
using artifact::DType;
using artifact::Role;

namespace {

constexpr double tolerance = 2e-4;
constexpr const char *kMegatron = R"({
  "(q|k|v|up)\\.w": ["tensor", null], "(q|k|v|up)\\.bias": ["tensor"],
  "(out|down)\\.w": [null, "tensor"]})";

/// What 2, 3 and 4 ranks divide, rows and heads.
Sizes even() {
  Sizes sizes;
  sizes.width = sizes.heads = sizes.vocabulary = 12;
  return sizes;
}

/// What none of them divides, so that the last ranks have less, or nothing.
Sizes uneven() {
  Sizes sizes;
  sizes.batch = 5;
  sizes.width = 6;
  sizes.heads = 3;
  sizes.vocabulary = 7;
  return sizes;
}

/// How a model is compiled for the ranks; `axis` has all of them.
struct Plan {
  std::string parallel, axis = "data", shard = {};
  CompileOptions options = {};
};

Plan planOf(const std::string &parallel, const char *optimizer = "adamw") {
  Plan plan;
  plan.parallel = parallel;
  plan.options.optimizer = std::string(optimizer) + ":lr=0.05";
  return plan;
}

/// Compiled for so many ranks, by the first one for all.
std::string bytesOf(const Connection &to, Traced model, const Sizes &sizes,
                    const Plan &plan, int ranks) {
  std::string bytes;
  if (to.rank() == 0) {
    CompileOptions options = plan.options;
    options.effort = 0;
    std::string file;
    if (ranks > 1) {
      options.mesh = plan.axis + "=" + std::to_string(ranks);
      options.parallel = plan.parallel;
      if (!plan.shard.empty()) {
        file = ::testing::TempDir() + "rank-rows-" + std::to_string(::getpid());
        std::ofstream(file) << plan.shard;
        options.shard = file;
      }
    }
    bytes = test::compiled(model, sizes, options);
    if (!file.empty())
      ::unlink(file.c_str());
  }
  auto size = int64_t(bytes.size());
  Status status = to.world->broadcast(&size, sizeof size, 0);
  bytes.resize(size_t(size));
  if (status.ok())
    status = to.world->broadcast(bytes.data(), size, 0);
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

/// A rank's model; null where that fails.
std::unique_ptr<runtime::Model>
modelOf(const std::string &bytes,
        const std::shared_ptr<comm::Communicator> &world) {
  auto own = loaded(bytes);
  EXPECT_TRUE(own.ok()) << own.status().message();
  if (!own)
    return nullptr;
  if (world) {
    Status status = own->setCommunicator(world);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return std::make_unique<runtime::Model>(*std::move(own));
}

/// Three steps have the outputs, parameters and states of one process.
void expectAsOne(const Connection &to, Traced model, const Sizes &sizes,
                 const Plan &plan) {
  SCOPED_TRACE(plan.parallel + " over " + plan.axis);
  auto one = modelOf(bytesOf(to, model, sizes, plan, 1), nullptr);
  auto own = modelOf(bytesOf(to, model, sizes, plan, to.ranks()), to.world);
  if (one && own)
    expectNear(trained(*own), trained(*one), tolerance);
}

void X01_TheMeanIsOverAllRowsThatCount(const Connection &to) {
  expectAsOne(to, mlp, even(), planOf("ddp"));
  expectAsOne(to, mixture, even(), planOf("ddp"));
}

void X02_RowsThatDoNotDivide(const Connection &to) {
  expectAsOne(to, mlp, uneven(), planOf("ddp", "momentum"));
  expectAsOne(to, decoder, uneven(), planOf("fsdp", "momentum"));
}

void X03_MasksAreThoseOfOneProcess(const Connection &to) {
  expectAsOne(to, dropouts, even(), planOf("ddp"));
  Plan columns = planOf("tp");
  columns.axis = "tensor";
  columns.shard = R"({"up\\.w": ["tensor", null], "up\\.bias": ["tensor"],
                      "down\\.w": [null, "tensor"]})";
  expectAsOne(to, dropouts, even(), columns);
}

void X04_StatisticsAreOfAllRows(const Connection &to) {
  expectAsOne(to, convolutions, even(), planOf("ddp", "momentum"));
}

void X05_StatesAreCut(const Connection &to) {
  for (const char *kind : {"zero1", "zero2"})
    for (const Sizes &sizes : {even(), uneven()})
      expectAsOne(to, mlp, sizes, planOf(kind, "momentum"));
}

/// What a rank has allocated after steps is what was planned for it.
void X06_ThePlannedPeakHolds(const Connection &to) {
  for (const char *kind : {"zero1", "fsdp"})
    for (bool accumulates : {false, true})
      for (const char *recompute : {"", "up"}) {
        Plan plan = planOf(kind);
        plan.options.accumulate = accumulates;
        plan.options.recompute = recompute;
        SCOPED_TRACE(std::string(kind) + (accumulates ? " accumulates" : "") +
                     recompute);
        auto own =
            modelOf(bytesOf(to, mlp, even(), plan, to.ranks()), to.world);
        if (!own)
          return;
        const artifact::Manifest &manifest = own->manifest();
        std::vector<const artifact::Program *> programs = {
            manifest.findProgram("step")};
        if (accumulates)
          programs.push_back(manifest.findProgram("accumulate"));
        Tensors inputs = inputsOf(manifest, 1);
        std::vector<runtime::Argument> arguments;
        for (auto &[name, tensor] : inputs)
          arguments.push_back({name, &tensor});
        for (int i = 0; i < 2; ++i)
          for (size_t p = programs.size(); p-- > 0;) {
            Status status = own->run(programs[p]->name, arguments, {});
            ASSERT_TRUE(status.ok()) << status.message();
          }
        EXPECT_EQ(own->memory().peak,
                  artifact::plannedOnHost(manifest, *manifest.stepMemory,
                                          programs, /*threads=*/1));
      }
}

void X06_ParametersAreGatheredForwardAndBackward(const Connection &to) {
  expectAsOne(to, tied, even(), planOf("fsdp", "momentum"));
  Plan again = planOf("fsdp", "momentum");
  again.options.recompute = "up|down";
  expectAsOne(to, decoder, even(), again);
}

void X07_ClipsByTheNormOfOneProcess(const Connection &to) {
  for (const char *kind : {"ddp", "fsdp"}) {
    Plan plan = planOf(kind);
    plan.options.clip = "norm:0.05";
    expectAsOne(to, mlp, even(), plan);
    expectAsOne(to, mlp, uneven(), plan);
  }
}

/// A number that is none in the rows of the last rank.
void X07_X08_ANaNOnOneRankSkipsTheUpdateOnAll(const Connection &to) {
  for (const char *kind : {"ddp", "zero2", "fsdp"}) {
    Plan plan = planOf(kind);
    plan.options.clip = "norm:1";
    plan.options.lossScale = "dynamic";
    auto own = modelOf(bytesOf(to, mlp, even(), plan, to.ranks()), to.world);
    if (!own)
      return;
    auto whole = [&](const char *name) { return *own->getWhole(name); };
    Tensors before;
    for (const char *name : {"up.w", "down.w", "adamw.m:up.w"})
      before[name] = whole(name);
    Tensors inputs = inputsOf(own->manifest(), 1);
    if (to.rank() == to.ranks() - 1)
      inputs["x"].mutableData<float>()[0] = NAN;
    std::vector<runtime::Argument> arguments;
    for (auto &[name, tensor] : inputs)
      arguments.push_back({name, &tensor});
    Status status = own->run("step", arguments, {});
    ASSERT_TRUE(status.ok()) << status.message();
    for (auto &[name, tensor] : before)
      expectNear({{name, whole(name.c_str())}}, {{name, tensor}}, 0);
    EXPECT_EQ(whole("adamw.scale").at(0), 32768);
    EXPECT_EQ(whole("adamw.skipped").at(0), 1);
  }
}

void X08_ScalesAsOneProcess(const Connection &to) {
  for (const char *kind : {"ddp", "fsdp"}) {
    Plan plan = planOf(kind);
    plan.options.lossScale = "dynamic:interval=2";
    expectAsOne(to, mlp, even(), plan);
  }
}

void X09_GradientsAreReducedOnceAfterTheLastBatch(const Connection &to) {
  for (const char *kind : {"ddp", "zero2"}) {
    Plan plan = planOf(kind);
    plan.options.accumulate = true;
    std::vector<std::vector<Tensors>> learned;
    for (int ranks : {1, to.ranks()}) {
      auto model = modelOf(bytesOf(to, mlp, even(), plan, ranks),
                           ranks > 1 ? to.world : nullptr);
      if (!model)
        return;
      auto sums = [&](const char *name) {
        int count = 0;
        for (const artifact::Launch &launch :
             model->manifest().findProgram(name)->launches)
          count += launch.isCollective() && launch.collective->elements > 1;
        return count;
      };
      if (ranks > 1 && std::strcmp(kind, "ddp") == 0) {
        EXPECT_EQ(sums("accumulate"), 0);
        EXPECT_GE(sums("step"), 4);
      }
      for (uint64_t seed : {11, 12}) {
        Tensors inputs = inputsOf(model->wholeManifest(), seed);
        std::vector<runtime::Argument> arguments;
        for (auto &[name, tensor] : inputs) {
          auto piece = cut(*model, *model->manifest().findValue(name), tensor);
          ASSERT_TRUE(piece.ok());
          tensor = *piece;
          arguments.push_back({name, &tensor});
        }
        Status status = model->run("accumulate", arguments, {});
        ASSERT_TRUE(status.ok()) << status.message();
      }
      learned.push_back(trained(*model));
      // Sums are those of each rank.
      std::erase_if(learned.back().back(), [](const auto &of) {
        return of.first.find(".sum") != std::string::npos;
      });
    }
    expectNear(learned[1], learned[0], tolerance);
  }
}

/// The first rank alone defines the cotangent of "y".
void X10_CotangentsThatSomeRanksDefine(const Connection &to) {
  std::vector<Tensors> learned;
  Plan plan;
  plan.parallel = "ddp";
  for (int ranks : {1, to.ranks()}) {
    auto model = modelOf(bytesOf(to, outputs, even(), plan, ranks),
                         ranks > 1 ? to.world : nullptr);
    if (!model)
      return;
    Tensors inputs = inputsOf(model->wholeManifest(), 3);
    auto x = cut(*model, *model->manifest().findValue("x"), inputs["x"]);
    ASSERT_TRUE(x.ok());
    int64_t rows = even().batch / to.ranks();
    auto dy = runtime::Tensor::zeros(
        DType::F32, std::vector<int64_t>{even().batch / ranks, 4});
    for (int64_t i = 0; i < rows * 4; ++i)
      dy->mutableData<float>()[i] = float(i) - 7.5f;
    bool defines = ranks == 1 || to.rank() == 0;
    std::vector<runtime::Argument> arguments = {{"x", &*x}};
    auto context = model->forward(arguments, {});
    ASSERT_TRUE(context.ok()) << context.status().message();
    Tensors grads;
    std::vector<runtime::Destination> destinations;
    for (const artifact::Value &value : model->manifest().values)
      if (value.requiresGrad && value.role == Role::Param)
        destinations.push_back({value.name, &grads[value.name]});
    std::vector<runtime::Argument> cotangents = {
        {"y", defines ? &*dy : nullptr}, {"total", nullptr}};
    Status status = model->backward(*context, cotangents, destinations);
    ASSERT_TRUE(status.ok()) << status.message();
    learned.push_back(grads);
  }
  expectNear(learned[1], learned[0], tolerance);
}

void X11_TiedAcrossShards(const Connection &to) {
  for (const char *shard :
       {R"({"table": ["tensor", null]})", R"({"table": [null, "tensor"]})"}) {
    Plan plan = planOf("tp");
    plan.axis = "tensor";
    plan.shard = shard;
    expectAsOne(to, tied, even(), plan);
  }
}

void X12_ColumnsThenRows(const Connection &to) {
  Plan plan = planOf("tp", "momentum");
  plan.axis = "tensor";
  plan.shard = kMegatron;
  expectAsOne(to, decoder, even(), plan);
  plan.shard = R"({"table": ["tensor", null], "head\\.w": ["tensor", null],
                   "head\\.bias": ["tensor"]})";
  expectAsOne(to, decoder, even(), plan);
}

void X13_AnotherNumberOfRanksIsAnError(const Connection &to) {
  auto own = loaded(bytesOf(to, mlp, even(), planOf("ddp"), to.ranks() + 1));
  ASSERT_TRUE(own.ok()) << own.status().message();
  Status status = own->setCommunicator(to.world);
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_NE(status.message().find(std::to_string(to.ranks() + 1) + " ranks"),
            std::string::npos)
      << status.message();
}

/// Bits are those of ranks that communicate in turn with computing, and those
/// of sums that wait for more, or for fewer.
void X14_BitsDoNotDependOnWhatOverlaps(const Connection &to) {
  for (const char *kind : {"ddp", "fsdp"}) {
    std::vector<std::vector<Tensors>> learned;
    for (auto [world, bucket] :
         {std::pair(to.world, 0.0), std::pair(to.inTurn, 0.0),
          std::pair(to.world, 1e-5), std::pair(to.world, 64.0)}) {
      Plan plan = planOf(kind);
      if (bucket > 0)
        plan.options.bucketMb = bucket;
      auto own = modelOf(bytesOf(to, mlp, even(), plan, to.ranks()), world);
      if (!own)
        return;
      learned.push_back(trained(*own));
      expectNear(learned.back(), learned.front(), 0);
    }
  }
}

/// Statistics of the rank's own rows, of which all have the mean.
void X15_RunningStatisticsAreTheMeanOfTheRanks(const Connection &to) {
  Plan plan = planOf("ddp", "momentum");
  plan.options.batchNorm = "per-rank";
  auto own =
      modelOf(bytesOf(to, convolutions, even(), plan, to.ranks()), to.world);
  if (!own)
    return;
  std::vector<Tensors> results = trained(*own);
  for (const char *name : {"new conv1.mean", "new conv2.variance"}) {
    const runtime::Tensor &mine = results.back().at(name);
    std::vector<float> first(mine.data<float>(),
                             mine.data<float>() + mine.elements());
    Status status = to.world->broadcast(
        first.data(), int64_t(first.size() * sizeof(float)), 0);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t i = 0; i < mine.elements(); ++i)
      EXPECT_EQ(mine.data<float>()[i], first[size_t(i)]) << name;
  }
}

void X16_LoopsAndBranchesAreWhole(const Connection &to) {
  for (const char *kind : {"ddp", "fsdp"})
    expectAsOne(to, flow, even(), planOf(kind));
}

/// As many stages as ranks: the losses of accumulation, and the planned peak.
void X17_StagesHaveTheLossesOfAccumulation(const Connection &to) {
  Way way;
  way.ranks = to.ranks();
  static std::mutex mutex;
  static std::map<int64_t, Compilation> known;
  Compilation *stages = nullptr, *one = nullptr;
  {
    std::lock_guard lock(mutex);
    for (const Way &each : {way, way.alone()})
      if (known[each.ranks].readers.empty())
        known[each.ranks] = compiled(mlp, each);
    stages = &known[way.ranks], one = &known[1];
  }
  ASSERT_TRUE(stages->status.ok()) << stages->status.message();
  auto made = pipelineOf(stages->readers, to.world);
  ASSERT_TRUE(made) << made.status().message();
  constexpr int64_t updates = 3, batches = 5;
  std::vector<double> wanted = alone(one->readers[0], updates, batches).losses;
  std::optional<Batch> batch;
  for (int64_t i = 0; i < updates; ++i) {
    std::vector<double> losses;
    Status status = made->train(
        batches, /*updates=*/true,
        [&](int64_t b) -> Result<std::span<const runtime::Argument>> {
          batch.emplace(made->models()[0].manifest().pipeline->inputs,
                        i * batches + b);
          return std::span<const runtime::Argument>(batch->arguments);
        },
        losses);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t b = 0; b < batches; ++b)
      EXPECT_NEAR(losses[size_t(b)], wanted[size_t(i * batches + b)],
                  tolerance);
  }
  std::vector<artifact::Manifest> manifests;
  for (const artifact::ArtifactReader &reader : stages->readers)
    manifests.push_back(reader.manifest());
  auto planned = pipeline::plannedMemory(manifests, to.rank(), batches, 1);
  ASSERT_TRUE(planned) << planned.status().message();
  EXPECT_EQ(made->peak(), planned->bytes);
}

/// What ranks have in pieces is taken apart and together without a difference.
void X18_X19_PiecesAreTheWhole(const Connection &to) {
  auto own =
      modelOf(bytesOf(to, mlp, uneven(), planOf("fsdp"), to.ranks()), to.world);
  auto other =
      modelOf(bytesOf(to, mlp, uneven(), planOf("ddp"), to.ranks()), to.world);
  if (!own || !other)
    return;
  (void)trained(*own);
  for (const artifact::Value &value : own->manifest().values)
    if (value.role == Role::Param || value.role == Role::State) {
      auto whole = own->getWhole(value.name);
      ASSERT_TRUE(whole.ok()) << whole.status().message();
      Status status = other->setWhole(value.name, *whole);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  auto next = stepOf(*own, 7), same = stepOf(*other, 7);
  ASSERT_TRUE(next.ok() && same.ok());
  expectNear(*same, *next, tolerance);
}

void X20_RandomPrograms(const Connection &to) {
  comm::testing::expectRandomPrograms(to.world, /*programs=*/200);
}

#define ROW(name)                                                              \
  { #name, name }
const RankRow all[] = {ROW(X01_TheMeanIsOverAllRowsThatCount),
                       ROW(X02_RowsThatDoNotDivide),
                       ROW(X03_MasksAreThoseOfOneProcess),
                       ROW(X04_StatisticsAreOfAllRows),
                       ROW(X05_StatesAreCut),
                       ROW(X06_ThePlannedPeakHolds),
                       ROW(X06_ParametersAreGatheredForwardAndBackward),
                       ROW(X07_ClipsByTheNormOfOneProcess),
                       ROW(X07_X08_ANaNOnOneRankSkipsTheUpdateOnAll),
                       ROW(X08_ScalesAsOneProcess),
                       ROW(X09_GradientsAreReducedOnceAfterTheLastBatch),
                       ROW(X10_CotangentsThatSomeRanksDefine),
                       ROW(X11_TiedAcrossShards),
                       ROW(X12_ColumnsThenRows),
                       ROW(X13_AnotherNumberOfRanksIsAnError),
                       ROW(X14_BitsDoNotDependOnWhatOverlaps),
                       ROW(X15_RunningStatisticsAreTheMeanOfTheRanks),
                       ROW(X16_LoopsAndBranchesAreWhole),
                       ROW(X17_StagesHaveTheLossesOfAccumulation),
                       ROW(X18_X19_PiecesAreTheWhole),
                       ROW(X20_RandomPrograms)};
#undef ROW

} // namespace

std::span<const RankRow> test::rankRows() { return all; }
