//===- UnevenTest.cpp - sizes that do not divide by the ranks -------------===//
//
// Rows X02, X05 and X12. What lies behind the end of an argument is no number
// (Ranks.h), which any sum would show, and three steps have the outputs,
// parameters and states of one process.
//
//===----------------------------------------------------------------------===//
#include "tests/shard/Steps.h"

#include "ir/Collective.h"
#include "ir/Signature.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

/// 5 rows over 4 ranks are 2, 2, 1 and none; 3 over 4, one each and none. The
/// numbers in the padding are none, which any sum would show.
TEST(Uneven, X02_RowsThatDoNotDivide) {
  for (int64_t batch : {3, 5})
    for (const char *kind : {"ddp", "fsdp"})
      for (auto *model : {mlp, decoder, fusedDecoder, convolutions, dropouts,
                          mixture, tied, flow})
        expectEqual(model,
                    {"data=4", kind, "", kSgd, "", false, {.batch = batch}});
  for (const char *mesh : {"data=2", "data=3", "data=8"})
    for (auto *model : {mlp, decoder, convolutions, dropouts})
      expectEqual(model, {mesh, "ddp", "", kSgd, "", false, {.batch = 5}});
}

/// A rank computes with its rows, not with all of them.
TEST(Uneven, X02_RowsThatDoNotDivideAreCut) {
  Compiled ranks(decoder, {"data=4", "ddp", "", kSgd, "", false, {.batch = 5}});
  ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
  EXPECT_EQ(ranks.collectives("forward")["all_gather"], 0);
  EXPECT_EQ(ranks.collectives("backward")["all_gather"], 0);
  func::FuncOp forward = ranks.function("forward");
  forward.walk([&](MatmulOp op) {
    EXPECT_NE(op.getY().getType().getDimSize(0), 5);
    EXPECT_NE(op.getY().getType().getDimSize(0), 5 * 4);
  });
  EXPECT_EQ(
      forward.getArgumentTypes()[0],
      RankedTensorType::get({2, 4}, IntegerType::get(&ranks.context, 64)));
}

TEST(Uneven, X02_NestedCutsThatDoNotDivide) {
  for (int64_t batch : {3, 5, 7, 10})
    for (const char *mesh : {"data=2,tensor=2", "data=2,tensor=3",
                             "data=3,tensor=2", "tensor=2,data=2"}) {
      bool isFirst = mesh[0] == 'd';
      std::string rows = isFirst ? R"([["data", "tensor"], null])"
                                 : R"([["tensor", "data"], null])";
      std::string label =
          isFirst ? R"([["data", "tensor"]])" : R"([["tensor", "data"]])";
      std::string plan = "{\"x\": " + rows + ", \"labels\": " + label +
                         ", \"logits\": " + rows + "}";
      for (const char *kind : {"ddp+tp", "zero2+tp"})
        expectEqual(mlp, {mesh, kind, plan, kSgd, "", false, {.batch = batch}});
      // One of them alone cuts the labels.
      plan = "{\"x\": " + rows + ", \"labels\": [\"tensor\"]}";
      expectEqual(mlp,
                  {mesh, "ddp+tp", plan, kSgd, "", false, {.batch = batch}});
    }
}

TEST(Uneven, X02_RandomModels) {
  const char *const meshes[] = {
      "data=2", "data=3",          "data=4",          "data=5",
      "data=8", "data=2,tensor=2", "data=3,tensor=2", "data=2,tensor=3"};
  const char *const kinds[] = {"ddp", "zero1", "zero2", "fsdp"};
  const char *const plans[] = {R"({"x": [["data", "tensor"], null]})",
                               R"({"x": ["data", "tensor"]})",
                               R"({"x|z": ["tensor", "data"]})"};
  for (uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Numbers number(seed);
    auto below = [&](size_t limit) { return size_t(number() * double(limit)); };
    std::string mesh = meshes[below(8)], kind = kinds[below(4)], plan;
    if (mesh.find("tensor") != std::string::npos) {
      plan = plans[below(3)];
      kind += "+tp";
    }
    Sizes sizes;
    sizes.batch = 1 + int64_t(below(13));
    sizes.width = 1 + int64_t(below(7));
    sizes.vocabulary = 1 + int64_t(below(7));
    sizes.seed = seed;
    expectEqual(test::random, {mesh, kind, plan, kSgd, "", false, sizes});
  }
}

/// Parameters of 6, 7 and 4 rows over 4 and over 5 ranks.
TEST(Uneven, X05_SizesThatDoNotDivide) {
  for (const char *optimizer : {"adamw:lr=0.05", "momentum:lr=0.05"})
    for (const char *kind : {"zero1", "zero2", "fsdp"})
      for (const char *mesh : {"data=4", "data=5", "data=7"})
        expectEqual(
            mlp,
            {mesh, kind, "", optimizer, "", false, {.batch = 6, .width = 7}});
  // The norm is of what there is; sums over batches are states.
  for (const char *kind : {"zero1", "zero2", "fsdp"}) {
    Sizes sizes{.batch = 6, .width = 7};
    expectEqual(mlp, {"data=5", kind, "", kSgd, "norm:0.05", false, sizes});
    expectEqual(mlp, {"data=5", kind, "", kSgd, "", true, sizes});
  }
  Compiled ranks(
      mlp, {"data=5", "fsdp", "", kSgd, "", false, {.batch = 6, .width = 7}});
  ASSERT_TRUE(ranks.isMade) << ranks.diagnostics;
  func::FuncOp step = ranks.function("step");
  auto w = findValue(step, "up.w");
  ASSERT_TRUE(w);
  EXPECT_EQ(cast<RankedTensorType>(step.getArgumentTypes()[*w]).getShape(),
            (ArrayRef<int64_t>{2, 6}));
  // Of 4 elements over 5 ranks nothing is gained.
  auto bias = findValue(step, "down.bias");
  ASSERT_TRUE(bias);
  EXPECT_FALSE(roleOfArgument(step, *bias).getSharding());
}

/// 7 words over 2, 3 and 4 ranks; heads and columns, too.
TEST(Uneven, X12_SizesThatDoNotDivide) {
  Sizes sizes;
  sizes.vocabulary = 7;
  const char *plan =
      R"({"table": ["tensor", null], "head\\.w": ["tensor", null],
                         "head\\.bias": ["tensor"]})";
  for (const char *mesh : {"tensor=2", "tensor=3", "tensor=4"}) {
    auto ranks =
        expectEqual(decoder, {mesh, "tp", plan, kSgd, "", false, sizes});
    EXPECT_EQ(ranks->collectives("forward")["all_gather"], 0);
    EXPECT_EQ(ranks->collectives("backward")["all_gather"], 0);
    expectEqual(tied, {mesh, "tp", R"({"table": ["tensor", null]})", kSgd, "",
                       false, sizes});
    expectEqual(tied, {mesh, "tp", R"({"table": [null, "tensor"]})", kSgd, "",
                       false, sizes});
  }
  sizes.batch = 5;
  for (const char *kind : {"ddp+tp", "zero1+tp", "fsdp+tp"})
    expectEqual(decoder,
                {"data=2,tensor=2", kind, plan, kSgd, "", false, sizes});
  for (const char *mesh : {"tensor=3", "tensor=5"})
    expectEqual(decoder, {mesh, "tp", kMegatron, kSgd, "", false, sizes});
  for (const char *mesh : {"sequence=3", "sequence=5", "sequence=8"})
    for (auto *model : {decoder, fusedDecoder, tied})
      expectEqual(model, {mesh, "sp", "", kSgd, "", false, sizes});
}

/// Channels, in convolutions, poolings and statistics.
TEST(Uneven, X12_ChannelsThatDoNotDivide) {
  for (const char *plan : {R"({"conv1\\.w": ["tensor", null, null, null]})",
                           R"({"conv2\\.w": [null, "tensor", null, null]})",
                           R"({"conv.\\.w": ["tensor", null, null, null],
            "conv.\\.[sbmv].*": ["tensor"]})"})
    for (std::string mesh : {"tensor=3", "tensor=8", "data=2,tensor=3"})
      expectEqual(convolutions, {mesh,
                                 mesh[0] == 'd' ? "ddp+tp" : "tp",
                                 plan,
                                 kSgd,
                                 "",
                                 false,
                                 {.batch = 5}});
}
