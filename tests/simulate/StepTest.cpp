//===- StepTest.cpp - programs become tasks as the runtime runs them ------===//
#include "tools/simulate/Step.h"
#include "tools/simulate/Pictures.h"

#include "runtime/pipeline/Schedule.h"

#include <gtest/gtest.h>

namespace tandem::simulate {
namespace {

using artifact::Buffer;
using artifact::Collective;
using artifact::Launch;
using artifact::Manifest;
using artifact::Program;

/// A second is 1000 flops, and nothing else takes time.
DeviceRow device() {
  DeviceRow row;
  row.name = "test";
  row.target = "cuda:sm_90";
  row.memory = row.host = row.launches = 1e30;
  row.f32 = row.narrow = 1000;
  row.capacity = 1e9;
  return row;
}

LinkRow links(double latency = 0) {
  LinkRow row;
  row.rate = 1000;
  row.latency = latency;
  row.ranks = 64;
  return row;
}

/// Adds a kernel of products that takes so many milliseconds.
int64_t kernelOf(Manifest &manifest, int64_t millis) {
  artifact::Kernel kernel;
  kernel.symbol = "k" + std::to_string(manifest.kernels.size());
  kernel.kind = "contraction";
  kernel.flops = millis;
  manifest.kernels.push_back(kernel);
  return int64_t(manifest.kernels.size()) - 1;
}

void launch(Manifest &manifest, Program &program, int64_t millis,
            std::vector<Buffer> reads, Buffer writes) {
  Launch one;
  one.kernel = kernelOf(manifest, millis);
  for (const Buffer &buffer : reads) {
    one.reads.push_back(int64_t(one.buffers.size()));
    one.buffers.push_back(int64_t(program.buffers.size()));
    program.buffers.push_back(buffer);
  }
  one.writes.push_back(int64_t(one.buffers.size()));
  one.buffers.push_back(int64_t(program.buffers.size()));
  program.buffers.push_back(writes);
  program.launches.push_back(one);
}

/// An all_reduce of so many f32 elements.
void reduce(Program &program, int64_t elements, Buffer from, Buffer to) {
  Collective collective;
  collective.axes = {"data"};
  collective.elements = elements;
  auto first = int64_t(program.buffers.size());
  program.buffers.push_back(from);
  program.buffers.push_back(to);
  program.launches.push_back(Launch::over(collective, {first, first + 1}));
}

Result<StepResult> stepOf(const std::vector<Manifest> &stages,
                          StepOptions options = {}, double latency = 0) {
  std::vector<artifact::MeshAxis> mesh = stages.front().mesh;
  if (stages.front().pipeline)
    mesh.push_back({"pipe", stages.front().pipeline->ranks});
  Network network(mesh, links(latency), nullptr, 64, false);
  return simulateStep(stages, Device(device(), 256, 1, 0, {}), network,
                      options);
}

constexpr int64_t kMany = 1 << 17; ///< elements that no all_reduce joins with

Manifest overlapped() {
  Manifest manifest;
  manifest.mesh = {{"data", 2}};
  Program step;
  step.name = "step";
  launch(manifest, step, 100, {Buffer::argument(0)}, Buffer::arena(0, 64));
  // 2 * 1/2 * 4 * 2^17 B at 1000 B/s.
  reduce(step, kMany, Buffer::arena(0, 64), Buffer::arena(64, 64));
  launch(manifest, step, 300, {Buffer::argument(0)}, Buffer::arena(128, 64));
  launch(manifest, step, 200, {Buffer::arena(64, 64)}, Buffer::result(0));
  manifest.programs.push_back(step);
  return manifest;
}

constexpr double kExchange = 4.0 * kMany / 1000;

// A kernel runs beside the exchange, and the next one waits for it.
TEST(Step, AKernelWaitsForTheCollectiveThatItReads) {
  std::vector<Manifest> stages = {overlapped()};
  auto step = stepOf(stages);
  ASSERT_TRUE(step) << step.status().message();
  EXPECT_NEAR(step->seconds, 0.1 + kExchange + 0.2, 1e-9);
  EXPECT_NEAR(step->ranks[0].times.exposed, kExchange - 0.3, 1e-9);
  EXPECT_EQ(step->ranks[0].exchanges.size(), 1u);
  EXPECT_EQ(boundOf(*step), "communication");
  StepOptions options;
  options.overlaps = false;
  auto inTurn = stepOf(stages, options);
  ASSERT_TRUE(inTurn);
  EXPECT_NEAR(inTurn->seconds, 0.6 + kExchange, 1e-9);
}

// X20: what uses the operand, or writes the result, waits, too; what shares no
// memory with it does not.
TEST(Step, MemoryDecidesWhoWaits) {
  struct Case {
    Buffer reads, writes;
    bool waits;
  } cases[] = {{Buffer::arena(0, 64), Buffer::arena(192, 64), false},
               {Buffer::arena(256, 64), Buffer::arena(32, 64), true},
               {Buffer::arena(256, 64), Buffer::arena(100, 8), true},
               {Buffer::arena(96, 8), Buffer::arena(192, 64), true},
               {Buffer::arena(128, 8), Buffer::arena(192, 64), false}};
  for (const Case &one : cases) {
    Manifest manifest;
    manifest.mesh = {{"data", 2}};
    Program step;
    step.name = "step";
    reduce(step, kMany, Buffer::arena(0, 64), Buffer::arena(64, 64));
    launch(manifest, step, 50, {one.reads}, one.writes);
    manifest.programs.push_back(step);
    auto result = stepOf({manifest});
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->seconds, kExchange + (one.waits ? 0.05 : 0), 1e-9)
        << one.reads.offset << " " << one.writes.offset;
  }
}

// X21: small ones that stand side by side take one latency.
TEST(Step, SmallAllReducesGoTogether) {
  Manifest manifest;
  manifest.mesh = {{"data", 2}};
  Program step;
  step.name = "step";
  for (int64_t i = 0; i < 3; ++i)
    reduce(step, 1, Buffer::arena(128 * i, 64),
           Buffer::arena(128 * i + 64, 64));
  // One that reads what one of them writes does not.
  reduce(step, 1, Buffer::arena(64, 64), Buffer::arena(512, 64));
  manifest.programs.push_back(step);
  auto result = stepOf({manifest}, {}, /*latency=*/1);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->ranks[0].exchanges.size(), 1u);
  EXPECT_EQ(result->ranks[0].exchanges[0].count, 2);
  EXPECT_NEAR(result->seconds, 2 * 2 * 1 + 4 * 4 / 1000., 1e-9);
}

TEST(Step, SeveralBatchesAreAddedUpFirst) {
  Manifest manifest = overlapped();
  Program accumulate;
  accumulate.name = "accumulate";
  launch(manifest, accumulate, 400, {Buffer::argument(0)}, Buffer::argument(1));
  manifest.programs.push_back(accumulate);
  StepOptions options;
  options.batches = 4;
  auto result = stepOf({manifest}, options);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->seconds, 3 * 0.4 + 0.3 + kExchange, 1e-9);
  std::vector<Manifest> without = {overlapped()};
  auto refused = stepOf(without, options);
  EXPECT_EQ(refused.status().message(),
            "several batches for an update need a program 'accumulate', which "
            "'compile --accumulate' makes");
}

/// Stages of a forward of 1 s and a backward of 2 s.
std::vector<Manifest> stagesOf(int64_t stages, int64_t ranks) {
  std::vector<Manifest> all;
  for (int64_t s = 0; s < stages; ++s) {
    Manifest manifest;
    manifest.pipeline = artifact::Pipeline{};
    manifest.pipeline->stage = s;
    manifest.pipeline->stages = stages;
    manifest.pipeline->ranks = ranks;
    for (auto [name, millis] :
         {std::pair("forward", 1000), std::pair("backward", 2000)}) {
      Program program;
      program.name = name;
      launch(manifest, program, millis, {Buffer::argument(0)},
             Buffer::result(0));
      manifest.programs.push_back(program);
    }
    manifest.stepMemory = artifact::StepMemory{};
    manifest.stepMemory->parameters = 1000 + s;
    manifest.stepMemory->saved = 10;
    all.push_back(manifest);
  }
  return all;
}

// Equal stages, and messages that take no time: a rank is idle for
// (S - 1) / (K + S - 1) of the time, exactly as the schedule says.
TEST(Step, TheBubbleOfEqualStages) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t batches : {1, 2, 4, 8, 16, 32}) {
      std::vector<Manifest> stages = stagesOf(ranks, ranks);
      StepOptions options;
      options.batches = batches;
      auto result = stepOf(stages, options);
      ASSERT_TRUE(result) << result.status().message();
      EXPECT_NEAR(result->seconds, 3.0 * double(batches + ranks - 1), 1e-9);
      for (const RankResult &rank : result->ranks)
        EXPECT_NEAR(rank.times.bubble / rank.times.step,
                    pipeline::bubbleOf(ranks, ranks, batches), 1e-9)
            << ranks << " ranks, " << batches << " batches";
    }
}

// Stages are dealt out to ranks in turn, and each rank has the memory of its
// own.
TEST(Step, RanksHaveSeveralStages) {
  StepOptions options;
  options.batches = 8;
  auto result = stepOf(stagesOf(4, 2), options);
  ASSERT_TRUE(result) << result.status().message();
  ASSERT_EQ(result->ranks.size(), 2u);
  EXPECT_EQ(result->ranks[1].stages, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(result->ranks[1].memory, 1011 + 1013);
  EXPECT_NEAR(result->ranks[1].times.kernels(), 2 * 8 * 3, 1e-9);
}

// What is planned is what `inspect` says of each stage, and batches under way
// are beside it: as many as stages from the own to the last one.
TEST(Step, MemoryIsThePlannedPeak) {
  StepOptions options;
  options.batches = 8;
  auto result = stepOf(stagesOf(4, 4), options);
  ASSERT_TRUE(result);
  for (int64_t r = 0; r < 4; ++r) {
    EXPECT_EQ(result->ranks[size_t(r)].memory, 1010 + r);
    EXPECT_EQ(result->ranks[size_t(r)].inFlight, 10 * (3 - r));
  }
}

TEST(Step, MissingStagesAreAnError) {
  std::vector<Manifest> stages = stagesOf(2, 2);
  stages.pop_back();
  EXPECT_EQ(stepOf(stages).status().message(), "expected 2 stages, but got 1");
  EXPECT_EQ(stepOf({Manifest()}).status().message(),
            "there is no program of a step");
}

// The same twice has the same bytes, and each task is in the trace.
TEST(Step, PicturesAreDeterministic) {
  std::vector<Manifest> stages = stagesOf(2, 2);
  auto one = stepOf(stages), two = stepOf(stages);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(toTrace(*one), toTrace(*two));
  std::string svg = toSvg(*one, "a <title> & more");
  EXPECT_EQ(svg, toSvg(*two, "a <title> & more"));
  EXPECT_NE(svg.find("a &lt;title> &amp; more"), std::string::npos);
  std::string trace = toTrace(*one);
  size_t events = 0;
  for (size_t at = 0; (at = trace.find("\"X\"", at)) != std::string::npos; ++at)
    ++events;
  EXPECT_EQ(events, one->tasks[0].size() + one->tasks[1].size());
}

} // namespace
} // namespace tandem::simulate
