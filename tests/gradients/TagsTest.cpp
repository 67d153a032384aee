//===- TagsTest.cpp - where the ops of a joint belong and come from -------===//
#include "passes/common/Phase.h"
#include "tests/gradients/GradientCheck.h"
#include "tests/gradients/Memory.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

constexpr const char *kModel = R"(
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(
      %x: tensor<3x4xf64> {tandem.role = #tandem.role<input "x">},
      %w: tensor<4x5xf64> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %g: tensor<5xf64> {tandem.role = #tandem.role<param "g" {requires_grad}>},
      %labels: tensor<3xi64> {tandem.role = #tandem.role<input "labels">})
      -> (tensor<f64> {tandem.role = #tandem.role<output "loss">}) {
    %0 = tandem.matmul %x, %w : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x5xf64>
    %n = tandem.layer_norm %0, %g, %g axis 1 : tensor<3x5xf64>, tensor<5xf64>, tensor<5xf64> -> tensor<3x5xf64>
    %t = tandem.gelu %n : tensor<3x5xf64>
    %c = tandem.custom_vjp "double" (%t) forward {
    ^bb0(%a: tensor<3x5xf64>):
      %b = tandem.add %a, %a : tensor<3x5xf64>
      tandem.yield %b : tensor<3x5xf64>
    } backward {
    ^bb0(%dy: tensor<3x5xf64>):
      %s = tandem.softmax %dy dim 1 : tensor<3x5xf64>
      tandem.yield %s : tensor<3x5xf64>
    } {outputs = 1, saved = 0, differentiable = 1} : (tensor<3x5xf64>), () -> tensor<3x5xf64>
    %loss = tandem.cross_entropy %c, %labels : tensor<3x5xf64>, tensor<3xi64> -> tensor<f64>
    return %loss : tensor<f64>
  }
})";

/// The line of the file that an op comes from; 0 if there is none.
unsigned lineOf(Location loc) {
  unsigned line = 0;
  loc->walk([&](Location inner) {
    if (auto place = dyn_cast<FileLineColLoc>(inner))
      line = place.getLine();
    return WalkResult::advance();
  });
  return line;
}

} // namespace

// After each pass every op of a joint is tagged, and one of the backward comes
// from the line of an op of the model: the one whose gradient it computes.
TEST(Tags, J21_EveryOpIsTaggedAndPlaced) {
  TestModule t(kModel);
  ASSERT_TRUE(t.module) << t.diagnostics;
  unsigned first = 0, last = 0;
  for (Operation &op : t.function("graph").getOps()) {
    first = first ? first : lineOf(op.getLoc());
    last = lineOf(op.getLoc());
  }
  ASSERT_LT(first, last);
  for (const char *pass :
       {"tandem-build-joint{order=2}", "tandem-optimize-joint"}) {
    ASSERT_TRUE(runPasses(*t.module, pass)) << t.diagnostics;
    for (const char *name : {"joint", "grad_joint"}) {
      std::set<unsigned> lines;
      for (Operation &op : t.function(name).getOps()) {
        if (op.hasTrait<OpTrait::IsTerminator>())
          continue;
        EXPECT_FALSE(passOf(&op).empty()) << pass << " " << name;
        unsigned line = lineOf(op.getLoc());
        EXPECT_TRUE(line >= first && line <= last)
            << pass << " " << name << " " << op.getName().getStringRef().str()
            << " " << line;
        if (passOf(&op) == "backward")
          lines.insert(line);
      }
      // The matmul, the norm, gelu, the loss; of the custom_vjp its backward.
      EXPECT_GE(lines.size(), 5u) << pass << " " << name;
    }
  }
  // Without its tag an op is refused.
  TestModule untagged(kModel);
  ASSERT_TRUE(runPasses(*untagged.module, "tandem-build-joint"));
  untagged.function("joint").getBody().front().front().removeAttr(kPassAttr);
  EXPECT_FALSE(runPasses(*untagged.module, "tandem-optimize-joint"));
  EXPECT_NE(untagged.diagnostics.find("without 'tandem.pass'"),
            std::string::npos);
}

// J20: equal expressions inside and outside of a no-grad region stay apart in
// every phase that differentiates, and each has its own gradient or none.
TEST(Tags, J20_NoGradIsNotMerged) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize"} {
      func.func @graph(%x: tensor<f64> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "loss">}) {
        %a = tandem.exp %x : tensor<f64>
        %b = tandem.exp %x {tandem.no_grad} : tensor<f64>
        %c = tandem.mul %a, %b : tensor<f64>
        return %c : tensor<f64>
      }
    })");
  ASSERT_TRUE(runPasses(*t.module, "tandem-build-joint,tandem-optimize-joint"))
      << t.diagnostics;
  unsigned count = 0;
  for (Operation &op : t.function("joint").getOps())
    count +=
        op.getName().getStringRef() == "tandem.exp" && passOf(&op) == "forward";
  EXPECT_EQ(count, 2u);
  Memory memory;
  memory.at(RoleKind::Input, &t.context, "x") = array({}, {0.5});
  memory.at(RoleKind::Cotangent, &t.context, "loss") = array({}, {1});
  memory.run(t.function("joint"));
  EXPECT_NEAR(memory.at(RoleKind::Grad, &t.context, "x")[0], std::exp(1.0),
              1e-12);
}

// A gradient in another type than its param reaches the optimizer in the
// param's.
TEST(Tags, J22_UpdateCastsTheGradient) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize", tandem.optimizer = "sgd:lr=0.5"} {
      func.func @graph(%w: tensor<f32> {tandem.role = #tandem.role<param "w" {grad_type = f64, requires_grad}>})
          -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
        %c = tandem.mul %w, %w : tensor<f32>
        return %c : tensor<f32>
      }
    })");
  ASSERT_TRUE(runPasses(*t.module, "tandem-build-joint,tandem-optimize-joint,"
                                   "tandem-partition-joint"))
      << t.diagnostics;
  auto update = t.function("update");
  unsigned index = *findArgument(update, RoleKind::Grad, "w");
  EXPECT_TRUE(cast<RankedTensorType>(update.getArgumentTypes()[index])
                  .getElementType()
                  .isF64());
  Memory memory;
  memory.at(RoleKind::Param, &t.context, "w") = array({}, {3});
  memory.at(RoleKind::State, &t.context, "sgd.lr") = array({}, {0.5});
  memory.run(t.function("step"));
  EXPECT_EQ(memory.at(RoleKind::Update, &t.context, "w")[0], 0);
}
