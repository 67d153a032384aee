//===- PipelineTest.cpp - models in stages, trained over threads ----------===//
//
// Rows X17, X11 and X03: stages on ranks have the losses, parameters and states
// of one process that adds up gradients of as many batches, and at most as many
// batches under way as there are stages from each of them to the end.
//
//===----------------------------------------------------------------------===//
#include "tests/shard/StageRuns.h"

#include "runtime/pipeline/Pipeline.h"
#include "runtime/pipeline/Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Of a sum each rank has its own: what it adds up to.
std::vector<double> ofOne(const std::string &name,
                          const std::vector<double> &elements, size_t count) {
  if (name.find(".sum:") == std::string::npos || elements.size() <= count)
    return elements;
  std::vector<double> sum(count);
  for (size_t e = 0; e < elements.size(); ++e)
    sum[e % count] += elements[e];
  return sum;
}

void expectNear(const Trained &got, const Trained &wanted) {
  ASSERT_EQ(got.losses.size(), wanted.losses.size());
  for (size_t i = 0; i < wanted.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], wanted.losses[i],
                1e-5 * std::abs(wanted.losses[i]))
        << "in batch " << i;
  for (const auto &[name, elements] : wanted.variables) {
    auto found = got.variables.find(name);
    ASSERT_NE(found, got.variables.end()) << name;
    std::vector<double> own = ofOne(name, found->second, elements.size());
    ASSERT_EQ(own.size(), elements.size()) << name;
    double largest = 1e-3;
    for (double element : elements)
      largest = std::max(largest, std::abs(element));
    for (size_t e = 0; e < elements.size(); ++e)
      EXPECT_NEAR(own[e], elements[e], 2e-4 * largest) << name << " at " << e;
  }
  EXPECT_EQ(got.variables.size(), wanted.variables.size());
}

/// What stages say of an output's rows is what one process says, or nothing.
void expectSameOutputs(const Trained &got, const Trained &wanted) {
  ASSERT_EQ(got.evaluated.size(), wanted.evaluated.size());
  for (const auto &[name, elements] : wanted.evaluated) {
    auto found = got.evaluated.find(name);
    ASSERT_NE(found, got.evaluated.end()) << name;
    ASSERT_EQ(found->second.size(), elements.size()) << name;
    for (size_t e = 0; e < elements.size(); ++e)
      EXPECT_NEAR(found->second[e], elements[e],
                  2e-4 * std::max(1.0, std::abs(elements[e])))
          << name << " at " << e;
    const artifact::Slot &own = got.outputs.at(name);
    const artifact::Slot &one = wanted.outputs.at(name);
    EXPECT_EQ(own.shape, one.shape) << name;
    if (own.rows != artifact::Rows::Unknown) {
      EXPECT_EQ(own.rows, one.rows) << name;
      EXPECT_EQ(own.counted, one.counted) << name;
    }
    ASSERT_TRUE(own.inputs && one.inputs) << name;
    EXPECT_TRUE(llvm::equal(std::set(own.inputs->begin(), own.inputs->end()),
                            std::set(one.inputs->begin(), one.inputs->end())))
        << name;
  }
}

/// Trains both ways and compares.
void expectEqual(const Program &program, const Way &way, int64_t batches = 5) {
  SCOPED_TRACE(std::to_string(way.ranks) + " ranks of " +
               std::to_string(way.virtualStages) + " stages, " + way.axes +
               " " + way.parallel);
  Compilation one = compiled(program, way.alone());
  Compilation cut = compiled(program, way);
  ASSERT_TRUE(cut.status.ok()) << cut.status.message() << cut.diagnostics;
  EXPECT_EQ(cut.diagnostics, "");
  int64_t stages = way.stages();
  ASSERT_EQ(int64_t(cut.readers.size()), stages);
  Trained wanted = alone(one.readers[0], 2, batches);
  Trained got = onRanks(cut.readers, 2, batches);
  expectNear(got, wanted);
  expectSameOutputs(got, wanted);
  if (!way.lossScale.empty())
    EXPECT_EQ(got.variables["adamw.skipped"][0], way.skips);
  for (const auto &[stage, most] : got.mostLive) {
    EXPECT_LE(most, std::min(stages - stage, batches)) << "stage " << stage;
    if (way.virtualStages == 1)
      EXPECT_EQ(most, std::min(stages - stage, batches)) << "stage " << stage;
  }
  int64_t group = pipeline::ranksOf(cut.readers[0].manifest()) / way.ranks;
  for (const auto &[name, count] : got.havers)
    EXPECT_EQ(count, group) << name << " is of several stages";
}

/// Unlike Adam's, its updates are small where a gradient is nothing but what
/// rounding left.
constexpr const char *kMomentum = "momentum:lr=0.05";
/// Columns of one product, and rows of the next.
constexpr const char *kMegatron = R"({
  "(q|k|v|up)\\.w": ["tensor", null], "(q|k|v|up)\\.bias": ["tensor"],
  "(out|down)\\.w": [null, "tensor"]})";

/// Layers of one kind, so many that each of some stages has one.
void deep(Trace &trace, const test::Sizes &sizes) {
  Tensor h = trace.input("x", {sizes.batch, 16});
  for (int i = 0; i < 8; ++i) {
    ModuleScope scope = trace.module("layer" + std::to_string(i));
    h = tanh(linear(h, trace.parameter("w", {16, 16}, Init::uniform(-0.5, 0.5)),
                    trace.parameter("bias", {16}, Init::constant(0.1))));
  }
  trace.output("loss", mean(h * h));
}

/// What one stage makes, and several later ones need.
void skips(Trace &trace, const test::Sizes &sizes) {
  Tensor x = trace.input("x", {sizes.batch, 16});
  auto layer = [&](const std::string &name, const Tensor &in) {
    return tanh(
        linear(in, trace.parameter(name, {16, 16}, Init::uniform(-0.5, 0.5))));
  };
  Tensor first = layer("a", x);
  Tensor h = first;
  for (const char *name : {"b", "c", "d", "e"})
    h = layer(name, h) + first;
  trace.output("loss", mean(h * h) + mean(first));
  trace.output("h", h);
}

/// Two layers, and a param of the last stage through whose gradient the scale
/// of the loss goes, times 1e30.
void loud(Trace &trace, const test::Sizes &sizes) {
  Tensor h = trace.input("x", {sizes.batch, 16});
  for (const char *name : {"a", "b"})
    h = tanh(
        linear(h, trace.parameter(name, {16, 16}, Init::uniform(-0.5, 0.5))));
  Tensor c = trace.parameter("c", {1}, Init::constant(0.5));
  trace.output("loss", mean(h * h) + mean(tanh(c * 1e-30) * 1e30));
}

/// Dropout in each layer.
void dropped(Trace &trace, const test::Sizes &sizes) {
  Tensor h = trace.input("x", {sizes.batch, 16});
  for (const char *name : {"a", "b", "c", "d"})
    h = dropout(tanh(linear(h, trace.parameter(name, {16, 16},
                                               Init::uniform(-0.5, 0.5)))),
                0.3);
  trace.output("loss", mean(h * h));
}

} // namespace

TEST(Pipeline, X17_TwoStagesHaveTheLossesOfAccumulation) {
  for (const auto &program : {test::mlp, test::decoder, test::fusedDecoder,
                              test::convolutions, test::mixture})
    expectEqual(program, {.ranks = 2});
}

TEST(Pipeline, X17_AsManyBatchesAreUnderWayAsStagesFollow) {
  expectEqual(deep, {.ranks = 2});
  expectEqual(deep, {.ranks = 4});
  expectEqual(deep, {.ranks = 4}, 3);
  expectEqual(deep, {.ranks = 3}, 2);
}

TEST(Pipeline, X17_ValuesGoThroughStagesBetween) {
  expectEqual(skips, {.ranks = 4});
}

TEST(Pipeline, X17_StagesOfARankTakeTurns) {
  expectEqual(deep, {.ranks = 2, .virtualStages = 2});
  expectEqual(deep, {.ranks = 2, .virtualStages = 4}, 8);
  expectEqual(skips, {.ranks = 2, .virtualStages = 2});
}

TEST(Pipeline, X11_AParameterOfSeveralStagesIsOne) {
  expectEqual(test::tied, {.ranks = 2});
  expectEqual(test::tied, {.ranks = 3});
}

TEST(Pipeline, X03_MasksAreThoseOfOneProcess) {
  expectEqual(test::dropouts, {.ranks = 2});
  expectEqual(dropped, {.ranks = 4});
}

/// Each stage is a model that several ranks share.
TEST(Pipeline, X17_StagesAreSharded) {
  for (const char *parallel : {"ddp", "zero1", "zero2", "fsdp"})
    expectEqual(test::mlp, {.ranks = 2, .axes = "data=2", .parallel = parallel},
                3);
  expectEqual(
      test::decoder,
      {.ranks = 2, .axes = "data=2", .parallel = "ddp", .optimizer = kMomentum},
      2);
}

TEST(Pipeline, X17_StagesOfADecoderAreSharded) {
  expectEqual(test::decoder,
              {.ranks = 2,
               .axes = "data=2,tensor=2",
               .parallel = "fsdp+tp",
               .plan = kMegatron,
               .optimizer = kMomentum},
              2);
}

TEST(Pipeline, X17_StagesOfARankAreSharded) {
  expectEqual(
      deep,
      {.ranks = 2, .virtualStages = 2, .axes = "data=2", .parallel = "ddp"}, 3);
}

/// X09: gradients are reduced in the update, and not for each batch.
TEST(Pipeline, X09_StagesReduceOnceForAnUpdate) {
  auto collectives = [](const artifact::Manifest &stage, const char *name) {
    const artifact::Program *program = stage.findProgram(name);
    return program ? llvm::count_if(program->launches,
                                    [](const artifact::Launch &launch) {
                                      return launch.collective.has_value();
                                    })
                   : 0;
  };
  for (const char *parallel : {"ddp", "zero1"}) {
    Compilation made =
        compiled(deep, {.ranks = 2, .axes = "data=2", .parallel = parallel});
    ASSERT_TRUE(made.status.ok()) << made.status.message();
    for (const artifact::ArtifactReader &stage : made.readers) {
      EXPECT_EQ(collectives(stage.manifest(), "backward"), 0) << parallel;
      EXPECT_EQ(collectives(stage.manifest(), "accumulation"), 0) << parallel;
      EXPECT_GT(collectives(stage.manifest(), "update"), 0) << parallel;
    }
  }
}

/// X02: rows that do not divide by the ranks of a stage.
TEST(Pipeline, X02_StagesAreShardedUnevenly) {
  Way way = {.ranks = 2, .axes = "data=3", .parallel = "ddp"};
  way.batch = 5;
  expectEqual(test::mlp, way, 2);
  way.parallel = "fsdp";
  way.batch = 1;
  expectEqual(test::mlp, way, 2);
}

/// X11 and X03 of stages that are sharded.
TEST(Pipeline, X11_AParameterOfSeveralStagesIsSharded) {
  expectEqual(test::tied, {.ranks = 2, .axes = "data=2", .parallel = "ddp"}, 2);
  expectEqual(test::tied, {.ranks = 3, .axes = "data=2", .parallel = "fsdp"},
              2);
  expectEqual(test::tied,
              {.ranks = 2,
               .axes = "tensor=2",
               .parallel = "tp",
               .plan = R"({"table": ["tensor", null]})"},
              2);
  expectEqual(dropped, {.ranks = 2, .axes = "data=2", .parallel = "zero1"}, 2);
}

/// X07: the norm is that of all stages' gradients.
TEST(Pipeline, X07_ClippingIsByTheNormOfAllStages) {
  Way way = {.ranks = 2, .virtualStages = 2, .clip = "norm:0.02"};
  way.optimizer = kMomentum;
  expectEqual(deep, way, 3);
  way = {.ranks = 2, .axes = "data=2", .parallel = "fsdp"};
  way.clip = "norm:0.02";
  way.optimizer = kMomentum;
  expectEqual(test::mlp, way, 2);
}

/// X08: a gradient of the last stage overflows in the first update.
TEST(Pipeline, X08_AnOverflowOfOneStageSkipsTheUpdateOfAll) {
  Way way = {.ranks = 2, .lossScale = "dynamic:init=5e8", .skips = 1};
  expectEqual(loud, way, 2);
  way.axes = "data=2";
  way.parallel = "zero1";
  expectEqual(loud, way, 2);
  way = {.ranks = 2, .virtualStages = 2, .lossScale = "8"};
  expectEqual(deep, way, 2);
}

/// Groups are of the whole model: each stage has no param of one of them.
TEST(Pipeline, X17_RatesAndAveragesAreThoseOfOneProcess) {
  Way way = {.ranks = 2};
  way.groups = {"layer0\\..*:lr=0.01", "layer7\\.w:weight_decay=0.3"};
  way.schedule = "cosine:warmup=1,total=4";
  way.ema = "0.9";
  way.swa = "start=1";
  expectEqual(deep, way, 2);
  way.groups = {"layer8\\..*:lr=0.01"};
  Compilation made = compiled(deep, way);
  EXPECT_NE(made.status.message().find("'layer8\\..*' has no member"),
            std::string::npos)
      << made.status.message();
}

/// No rank waits for ever, and each work comes behind what it needs.
TEST(Pipeline, X17_SchedulesComeToTheirEnd) {
  for (int64_t ranks = 1; ranks <= 6; ++ranks)
    for (int64_t each = 1; each <= 4; ++each)
      for (int64_t batches = 1; batches <= 13; ++batches) {
        int64_t stages = ranks * each;
        auto made = pipeline::scheduleOf(stages, ranks, batches);
        ASSERT_TRUE(made) << made.status().message();
        int64_t works = 0;
        for (size_t rank = 0; rank < made->size(); ++rank) {
          std::map<int64_t, int64_t> live;
          for (const pipeline::Step &step : (*made)[rank]) {
            if (!step.work)
              continue;
            ++works;
            EXPECT_EQ(size_t(step.work->stage % ranks), rank);
            int64_t &now = live[step.work->stage];
            now += step.work->isBackward ? -1 : 1;
            EXPECT_GE(now, 0);
            EXPECT_LE(now, stages - step.work->stage);
          }
        }
        EXPECT_EQ(works, 2 * stages * batches);
      }
}

/// With one stage a rank: (S - 1) / (K + S - 1). With several, who sends waits
/// for who receives.
TEST(Pipeline, X17_TheBubbleIsAsPredicted) {
  EXPECT_DOUBLE_EQ(pipeline::bubbleOf(4, 4, 8), 3.0 / 11);
  EXPECT_DOUBLE_EQ(pipeline::bubbleOf(2, 2, 64), 1.0 / 65);
  EXPECT_DOUBLE_EQ(pipeline::bubbleOf(4, 2, 2), 0.2);
  EXPECT_DOUBLE_EQ(pipeline::bubbleOf(4, 2, 8), 0.2);
}

TEST(Pipeline, X17_WhatCannotBeCutIsSaid) {
  Compilation made = compiled(test::mlp, {.ranks = 40});
  EXPECT_FALSE(made.status.ok());
  EXPECT_NE(made.diagnostics.find("expected at least 40 ops"),
            std::string::npos)
      << made.diagnostics;
}
