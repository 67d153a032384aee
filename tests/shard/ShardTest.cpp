//===- ShardTest.cpp - programs of ranks against those of one process -----===//
//
// Rows X01 to X07, X11, X12 and X15 as far as the compiled program decides
// them: three training steps by the reference, on all ranks of a mesh, give the
// outputs, parameters and states of one process.
//
//===----------------------------------------------------------------------===//
#include "tests/shard/Steps.h"

#include "ir/Collective.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"
#include "passes/partition/optimizers/Optimizers.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/shard/ParallelSpec.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

//===----------------------------------------------------------------------===//
// Rows of the batch
//===----------------------------------------------------------------------===//

TEST(Shard, X01_TheMeanIsOverAllRowsThatCount) {
  for (const char *mesh : {"data=2", "data=3", "data=4"}) {
    auto ranks = expectEqual(mlp, {mesh, "ddp", ""});
    EXPECT_EQ(ranks->collectives("forward")["all_gather"], 0);
  }
}

TEST(Shard, X01_Transformer) {
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    for (auto *model : {decoder, fusedDecoder})
      expectEqual(model, {mesh, "ddp", ""});
}

/// Other rows' values are gathered where they are read.
TEST(Shard, X01_WhatHasNoRuleIsComputedWhole) {
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    expectEqual(mixture, {mesh, "ddp", ""});
}

/// No collective is in a loop or in a branch: what they read is gathered.
TEST(Shard, X16_LoopsAndBranchesAreWhole) {
  for (const char *kind : {"ddp", "fsdp"})
    expectEqual(flow, {"data=2", kind, ""});
}

/// Cotangents and gradients of inputs are cut as what they belong to; both
/// outputs are differentiated, of which one is a sum over the rows.
TEST(Shard, X01_GradientsOfOutputsAndInputs) {
  Compiled one(outputs, {"", "", "", ""});
  ASSERT_TRUE(one.isMade) << one.diagnostics;
  Values values = startOf(one.function("joint"), /*seed=*/3);
  Values wanted = runOnRanks(one.function("joint"), values);
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    for (const char *kind : {"ddp", "zero2", "fsdp"}) {
      Compiled ranks(outputs, {mesh, kind, "", ""});
      ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
      func::FuncOp joint = ranks.function("joint");
      auto dx = findResult(joint, RoleKind::Grad, "x");
      ASSERT_TRUE(dx);
      EXPECT_TRUE(roleOfResult(joint, *dx).getSharding());
      Values got = runOnRanks(joint, values);
      EXPECT_EQ(wanted.size(), got.size());
      for (const auto &[name, array] : wanted)
        EXPECT_TRUE(isNear(got[name], array)) << name << " " << mesh << kind;
    }
}

TEST(Shard, X03_MasksAreThoseOfOneProcess) {
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    expectEqual(dropouts, {mesh, "ddp", ""});
  // Columns, too.
  std::string plan = R"({"up\\.w": ["tensor", null], "up\\.bias": ["tensor"],
                         "down\\.w": [null, "tensor"]})";
  expectEqual(dropouts, {"tensor=2", "tp", plan});
  expectEqual(dropouts, {"data=3,tensor=2", "ddp+tp", plan});
  expectEqual(dropouts, {"data=2,sequence=2", "ddp+sp", ""});
}

TEST(Shard, X04_StatisticsAreOfAllRows) {
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    expectEqual(convolutions, {mesh, "ddp", ""});
}

/// The same on one process: a mesh whose axis `data` cuts nothing says how many
/// groups there are.
TEST(Shard, X04_X15_StatisticsAreOfTheRanksRows) {
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    for (const char *kind : {"ddp", "fsdp"}) {
      Request own{mesh, kind, ""}, all{mesh, kind, ""};
      own.batchNorm = "per-rank";
      Compiled ranks(convolutions, own), synchronized(convolutions, all);
      ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
      Request grouped{mesh, "", ""};
      grouped.batchNorm = "per-rank";
      Compiled one(convolutions, grouped);
      ASSERT_TRUE(one.isMade) << one.diagnostics;
      Values values = startOf(one.function("step"), /*seed=*/7);
      Values wanted = runOnRanks(one.function("step"), values);
      Values got = runOnRanks(ranks.function("step"), values);
      for (const auto &[name, array] : wanted)
        EXPECT_TRUE(isNear(got[name], array)) << name << " " << mesh << kind;
      Values other = runOnRanks(synchronized.function("step"), values);
      const char *mean = "update of \"conv2.mean\"";
      EXPECT_FALSE(isNear(got[mean], other[mean]));
      // Nothing that is normalized waits for other ranks.
      EXPECT_LT(ranks.collectives("backward")["all_reduce"],
                synchronized.collectives("backward")["all_reduce"])
          << kind;
    }
}

/// What ranks make of their own rows is one value: the mean.
TEST(Shard, X04_X15_RunningStatisticsAreTheMeanOfTheRanks) {
  auto model = [](Trace &trace, const Sizes &) {
    Tensor x = trace.input("x", {4, 1});
    Tensor scale = trace.parameter("scale", {1}, Init::constant(1.0));
    Tensor bias = trace.parameter("bias", {1}, Init::constant(0.0));
    Tensor mean = trace.state("mean", {1}, Init::constant(0.0));
    Tensor variance = trace.state("variance", {1}, Init::constant(0.0));
    Tensor y = batchNorm(x, scale, bias, mean, variance, /*momentum=*/1.0);
    trace.output("y", y);
    trace.output("loss", tandem::mean(y * y));
  };
  Request request{"data=2", "ddp", "", kSgd};
  request.batchNorm = "per-rank";
  Compiled ranks(model, request);
  ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
  Values values = startOf(ranks.function("step"), 1);
  values["input \"x\""].data = {1, 3, 10, 30};
  Values got = runOnRanks(ranks.function("step"), values);
  EXPECT_NEAR(got["update of \"mean\""][0], 11, 1e-9); // of 2 and 20
  // Of 1 and 100, by the model's own 4 / 3.
  EXPECT_NEAR(got["update of \"variance\""][0], 50.5 * 4 / 3, 1e-5);
  EXPECT_NEAR(got["output \"y\""][0], -1, 1e-4);
  EXPECT_NEAR(got["output \"y\""][3], 1, 1e-4);
}

//===----------------------------------------------------------------------===//
// Optimizer states, gradients, parameters
//===----------------------------------------------------------------------===//

TEST(Shard, X05_StatesAreCut) {
  for (const char *optimizer :
       {"adamw:lr=0.05", "momentum:lr=0.05", "sgd:lr=1"})
    for (const char *kind : {"zero1", "zero2"})
      for (const char *mesh : {"data=2", "data=3", "data=4"})
        expectEqual(mlp, {mesh, kind, "", optimizer});
  for (const char *kind : {"zero1", "zero2"})
    for (auto *model : {decoder, convolutions})
      expectEqual(model, {"data=4", kind, ""});
}

TEST(Shard, X05_GradientsAreScattered) {
  Compiled ranks(mlp, {"data=2", "zero2", ""});
  ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
  EXPECT_EQ(ranks.collectives("backward")["reduce_scatter"], 4);
  EXPECT_EQ(ranks.collectives("backward")["all_reduce"], 0);
  EXPECT_EQ(ranks.collectives("update")["all_gather"], 4);
}

TEST(Shard, X06_ParametersAreGatheredForwardAndBackward) {
  for (const char *mesh : {"data=2", "data=3", "data=4"})
    for (auto *model : {mlp, decoder, convolutions, tied})
      expectEqual(model, {mesh, "fsdp", ""});
  Compiled ranks(mlp, {"data=2", "fsdp", ""});
  ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
  EXPECT_EQ(ranks.collectives("forward")["all_gather"], 4);
  // The first layer's input needs no gradient.
  EXPECT_EQ(ranks.collectives("backward")["all_gather"], 1);
  EXPECT_EQ(ranks.collectives("backward")["reduce_scatter"], 4);
  EXPECT_TRUE(ranks.collectives("update").empty());
  // Nothing that was gathered is saved.
  func::FuncOp forward = ranks.function("forward");
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (roleOfResult(forward, i).getKind() == RoleKind::Saved) {
      Operation *op = forward.getBody()
                          .front()
                          .getTerminator()
                          ->getOperand(i)
                          .getDefiningOp();
      EXPECT_FALSE(isa_and_nonnull<AllGatherOp>(op));
    }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

TEST(Shard, X12_ColumnsThenRows) {
  for (const char *mesh : {"tensor=2", "tensor=4"}) {
    auto ranks = expectEqual(decoder, {mesh, "tp", kMegatron});
    // One for attention, one for the MLP, each way.
    std::map<std::string, int> once = {{"all_reduce", 2}};
    EXPECT_EQ(ranks->collectives("forward"), once);
    EXPECT_EQ(ranks->collectives("backward"), once);
  }
  expectEqual(decoder, {"data=3,tensor=2", "ddp+tp", kMegatron});
  expectEqual(decoder, {"data=2,tensor=2", "fsdp+tp", kMegatron});
  expectEqual(decoder, {"data=2,tensor=2", "zero1+tp", kMegatron});
  expectEqual(decoder, {"tensor=2,data=2", "zero2+tp", kMegatron});
  expectEqual(fusedDecoder, {"tensor=2", "tp", R"({"up\\.w": ["tensor", null],
      "up\\.bias": ["tensor"], "down\\.w": [null, "tensor"],
      "qkv\\.w": ["tensor", null]})"});
}

TEST(Shard, X12_VocabularyWithoutGatheredLogits) {
  const char *plan =
      R"({"table": ["tensor", null], "head\\.w": ["tensor", null],
                         "head\\.bias": ["tensor"]})";
  for (const char *mesh : {"tensor=2", "tensor=4"}) {
    auto ranks = expectEqual(decoder, {mesh, "tp", plan});
    EXPECT_EQ(ranks->collectives("forward")["all_gather"], 0);
    EXPECT_EQ(ranks->collectives("backward")["all_gather"], 0);
  }
  expectEqual(decoder, {"data=2,tensor=2", "ddp+tp", plan});
}

TEST(Shard, X11_TiedAcrossShards) {
  for (const char *plan :
       {R"({"table": ["tensor", null]})", R"({"table": [null, "tensor"]})"})
    for (const char *mesh : {"tensor=2", "tensor=4"})
      expectEqual(tied, {mesh, "tp", plan});
  expectEqual(tied,
              {"data=2,tensor=2", "ddp+tp", R"({"table": ["tensor", null]})"});
}

TEST(Shard, X12_Sequences) {
  for (const char *mesh : {"sequence=2", "sequence=4"})
    for (auto *model : {decoder, fusedDecoder, tied})
      expectEqual(model, {mesh, "sp", ""});
  expectEqual(decoder, {"data=2,sequence=2", "ddp+sp", ""});
  expectEqual(decoder, {"data=2,sequence=2,tensor=2", "fsdp+sp+tp", kMegatron});
}

/// States are values of one process, so nothing can be undeclared: they are
/// whole, and what is made of all rows is made of all ranks' rows.
TEST(Shard, X15_RunningStatistics) {
  expectEqual(convolutions, {"data=2", "zero1", ""});
  const char *plan = R"({"conv1\\.w": ["tensor", null, null, null]})";
  expectEqual(convolutions, {"data=2,tensor=2", "ddp+tp", plan});
}

//===----------------------------------------------------------------------===//
// Clipping
//===----------------------------------------------------------------------===//

/// The norm is that of one process, whatever is cut. One sum of scalars over
/// ranks makes it, for each set of axes.
TEST(Shard, X07_T03_ClipsByTheNormOfOneProcess) {
  for (const char *clip : {"norm:0.05", "norm:100", "value:0.001"})
    for (const char *optimizer : {"sgd:lr=1", "adamw:lr=0.05"})
      for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"})
        for (const char *mesh : {"data=2", "data=4"})
          expectEqual(mlp, {mesh, kind, "", optimizer, clip});
  for (const char *mesh : {"tensor=2", "tensor=4"})
    expectEqual(decoder, {mesh, "tp", kMegatron, "sgd:lr=1", "norm:0.05"});
  for (const char *kind : {"ddp+tp", "zero1+tp", "zero2+tp", "fsdp+tp"}) {
    auto ranks = expectEqual(
        decoder, {"data=2,tensor=2", kind, kMegatron, "sgd:lr=1", "norm:0.05"});
    EXPECT_LE(ranks->collectives("update")["all_reduce"], 3) << kind;
  }
  auto ranks = expectEqual(mlp, {"data=2", "fsdp", "", "sgd:lr=1", "norm:1"});
  std::map<std::string, int> once = {{"all_reduce", 1}};
  EXPECT_EQ(ranks->collectives("update"), once);
}

/// What lies beyond the end of a value counts nothing in the norm.
TEST(Shard, X07_X02_ClipsByTheNormOfPiecesThatDoNotDivide) {
  for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"})
    for (const char *mesh : {"data=3", "data=5"})
      for (bool accumulates : {false, true})
        expectEqual(mlp, {mesh,
                          kind,
                          "",
                          "adamw:lr=0.05",
                          "norm:0.05",
                          accumulates,
                          {},
                          "dynamic"});
}

TEST(Shard, X08_ScalesAsOneProcess) {
  for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"})
    for (bool accumulates : {false, true})
      expectEqual(mlp, {"data=4",
                        kind,
                        "",
                        "adamw:lr=0.05",
                        "norm:0.05",
                        accumulates,
                        {},
                        "dynamic:interval=2"});
  expectEqual(decoder, {"data=2,tensor=2",
                        "fsdp+tp",
                        kMegatron,
                        "sgd:lr=1",
                        "",
                        false,
                        {},
                        "1024"});
}

/// A number that is none in the rows of one rank: all leave the update out, and
/// have the same scale and counts.
TEST(Shard, X07_X08_T03_ANaNOnOneRankSkipsTheUpdateOnAll) {
  Compiled one(mlp,
               {"", "", "", "adamw:lr=0.05", "norm:1", false, {}, "dynamic"});
  ASSERT_TRUE(one.isMade) << one.diagnostics;
  for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"}) {
    SCOPED_TRACE(kind);
    Compiled ranks(
        mlp,
        {"data=4", kind, "", "adamw:lr=0.05", "norm:1", false, {}, "dynamic"});
    ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
    Values values = startOf(one.function("step"), /*seed=*/7);
    Values before = values;
    Array &x = values["input \"x\""];
    x[x.size() - 1] = std::numeric_limits<double>::quiet_NaN();
    Values results = runOnRanks(ranks.function("step"), values);
    for (const auto &[name, array] : before) {
      size_t space = name.find(' ');
      auto after = results.find("update of" + name.substr(space));
      if (name.rfind("input", 0) == 0 || after == results.end())
        continue;
      if (name == "state \"adamw.skipped\"")
        EXPECT_EQ(after->second[0], 1);
      else if (name == "state \"adamw.scale\"")
        EXPECT_EQ(after->second[0], 32768);
      else if (name == "state \"adamw.grad_norm\"")
        EXPECT_TRUE(std::isnan(after->second[0]));
      else
        EXPECT_EQ(after->second.data, array.data) << name;
    }
  }
}

//===----------------------------------------------------------------------===//
// Accumulation
//===----------------------------------------------------------------------===//

/// Two batches are added up, and the third one's step uses their mean. Sums are
/// cut as the optimizer's other states.
TEST(Shard, T04_AccumulatesAsOneProcess) {
  for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"})
    for (const char *clip : {"", "norm:0.05"})
      for (auto *model : {mlp, convolutions, dropouts})
        expectEqual(model, {"data=2", kind, "", "adamw:lr=0.05", clip, true});
  expectEqual(decoder, {"data=2,tensor=2", "fsdp+tp", kMegatron,
                        "adamw:lr=0.05", "norm:0.05", true});
  expectEqual(decoder, {"data=2,sequence=2", "zero2+sp", "", "sgd:lr=1",
                        "value:0.05", true});
}

/// Batches before the last one only add up what each rank has. What is reduced
/// in the update, is reduced with them: as many collectives as without
/// accumulation.
TEST(Shard, X09_GradientsAreReducedOnceAfterTheLastBatch) {
  for (const char *kind : {"ddp", "zero1"})
    for (auto *model : {mlp, decoder}) {
      Compiled ranks(model, {"data=4", kind, "", "sgd:lr=1", "norm:1", true});
      Compiled plain(model, {"data=4", kind, "", "sgd:lr=1", "norm:1"});
      ASSERT_TRUE(ranks.isMade && plain.isMade) << ranks.diagnostics;
      auto ofForward = plain.collectives("forward");
      EXPECT_EQ(ranks.collectives("accumulate"), ofForward) << kind;
      EXPECT_EQ(ranks.collectives("step"), plain.collectives("step")) << kind;
      EXPECT_GT(ranks.collectives("step")["all_reduce"],
                ofForward["all_reduce"]);
      EXPECT_FALSE(ranks.function("accumulation"));
      auto step = ranks.function("step");
      auto sum = findValue(
          step, "sgd.sum:" + std::string(model == mlp ? "up.w" : "head.w"));
      ASSERT_TRUE(sum);
      EXPECT_TRUE(roleOfArgument(step, *sum).getSharding());
    }
  // A rank without rows adds nothing up.
  for (const char *kind : {"ddp", "zero1", "fsdp"})
    expectEqual(mlp, {"data=4",
                      kind,
                      "",
                      "adamw:lr=0.05",
                      "norm:0.05",
                      true,
                      {.batch = 5, .width = 7}});
  // What is cut is reduced for each batch, so that no rank has the whole sums.
  Compiled cut(mlp, {"data=4", "zero2", "", "sgd:lr=1", "", true});
  ASSERT_TRUE(cut.isMade) << cut.diagnostics;
  EXPECT_EQ(cut.collectives("accumulate")["reduce_scatter"], 4);
}

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

TEST(Shard, T05_T07_T08_RecipesAreThoseOfOneProcess) {
  for (const char *mesh : {"data=2", "data=3"})
    for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"})
      for (bool accumulates : {false, true})
        expectEqual(mlp, {mesh,
                          kind,
                          "",
                          "adamw:lr=0.05",
                          "norm:0.05",
                          accumulates,
                          {},
                          "dynamic",
                          {".*bias:weight_decay=0,lr=0.01"},
                          "cosine:warmup=1,total=4",
                          "0.5",
                          "start=2",
                          "0.01,gamma=0.5",
                          /*centralizes=*/accumulates});
}

/// What is not elementwise, too: norms and products are of whole parameters.
TEST(Shard, X08_EachOptimizerIsThatOfOneProcess) {
  for (const OptimizerKind &kind : optimizerKinds())
    for (const char *mesh : {"data=2", "data=3"})
      for (const char *parallel : {"zero1", "fsdp"}) {
        SCOPED_TRACE(kind.name.str());
        expectEqual(mlp, {mesh, parallel, "", kind.name.str() + ":lr=0.05"});
      }
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

static void refuses(const Request &request, const std::string &message) {
  Compiled ranks(mlp, request);
  EXPECT_FALSE(ranks.isMade) << message;
  EXPECT_NE(ranks.diagnostics.find(message), std::string::npos)
      << ranks.diagnostics;
}

TEST(Shard, RefusesWhatDoesNotFit) {
  refuses({"tensor=2", "tp", R"({"up\\.w": ["data", null]})"},
          "to be cut over axes of the mesh (tensor=2), but got 'data'");
  refuses({"tensor=2", "tp", R"({"up\\.w": ["tensor"]})"},
          "expected a sharding of 2 dimensions, but got 1");
  refuses({"tensor=2", "tp", R"({"up\\.w": ["tensor", "tensor"]})"},
          "expected the axis 'tensor' to cut one dimension");
  refuses({"tensor=2", "tp", R"({"upp.w": ["tensor", null]})"},
          "that 'upp.w' matches");
  refuses({"tensor=2", "tp",
           R"({"up.w": ["tensor", null], "u.*w": [null, "tensor"]})"},
          "asks for");
  refuses({"tensor=2", "tp", ""}, "--shard");
}

TEST(Shard, X04_RefusesRowsThatDoNotDivide) {
  Request request{"data=5", "ddp", ""};
  request.batchNorm = "per-rank";
  Compiled ranks(convolutions, request);
  EXPECT_FALSE(ranks.isMade);
  EXPECT_NE(ranks.diagnostics.find("expected a batch (12) that divides by the "
                                   "5 ranks of the axis 'data'"),
            std::string::npos)
      << ranks.diagnostics;
}

TEST(Shard, RefusesWordsThatAreNone) {
  auto meshError = [](StringRef text) {
    std::string error;
    EXPECT_FALSE(parseMeshSpec(text, error)) << text.str();
    return error;
  };
  EXPECT_NE(meshError("data=0").find("sizes of at least 1"), std::string::npos);
  EXPECT_NE(meshError("data=2,data=2").find("twice"), std::string::npos);
  for (StringRef text : {"", "data", "=2", "data=2,", "2d=2", "data=x"})
    EXPECT_NE(meshError(text).find("expected a mesh such as"),
              std::string::npos);
  EXPECT_NE(meshError("a=1000000,b=1000000").find("at most"),
            std::string::npos);
  auto kindError = [](StringRef text) {
    std::string error;
    EXPECT_FALSE(parseParallelSpec(text, {{"data", 2}}, error)) << text.str();
    return error;
  };
  EXPECT_NE(kindError("pp").find("needs an axis 'pipe'"), std::string::npos);
  EXPECT_NE(kindError("tp").find("needs an axis 'tensor'"), std::string::npos);
  EXPECT_NE(kindError("ddp+zero1").find("exclude each other"),
            std::string::npos);
  EXPECT_NE(kindError("ddp+ddp").find("twice"), std::string::npos);
  EXPECT_NE(kindError("").find("expected plans among"), std::string::npos);
  auto planError = [](StringRef text) {
    MLIRContext context;
    std::string error;
    EXPECT_FALSE(parseShardPlan(text, &context, error)) << text.str();
    return error;
  };
  EXPECT_NE(planError("[]").find("expected an object"), std::string::npos);
  EXPECT_NE(planError("{").size(), 0u);
  EXPECT_NE(planError(R"({"(": [null]})").find("regular expression"),
            std::string::npos);
  EXPECT_NE(planError(R"({"a": [null], "\u0061": ["data"]})")
                .find("stands twice in an object"),
            std::string::npos);
  EXPECT_NE(planError(R"([{"b": 1}, {"b": 1}])").find("expected an object"),
            std::string::npos);
  // Parsers recurse as deep as these say, and repeats are written out.
  EXPECT_NE(planError(std::string(200'000, '[')).find("nested more than 100"),
            std::string::npos);
  EXPECT_NE(planError(R"({"(((.{1,200}){1,200}){1,200}){1,200}": [null]})")
                .find("with its repeats written out"),
            std::string::npos);
  EXPECT_NE(planError("{\"" + std::string(200'000, '(') + "\": [null]}")
                .find("more than 100 parentheses"),
            std::string::npos);
  for (StringRef text : {R"({"w": 1})", R"({"w": [1]})", R"({"w": [[1]]})"})
    EXPECT_NE(planError(text).find("expected for 'w' a list"),
              std::string::npos);
}
