//===- ProgramsTest.cpp - the programs compute what the joint computes ----===//
#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"
#include "passes/partition/MaxFlow.h"
#include "tests/gradients/GradientCheck.h"
#include "tests/gradients/Memory.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

#include <ctime>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;
using reference::Array;

namespace {

constexpr const char *kModel = R"(
  module attributes {tandem.phase = "capture", tandem.optimizer = "OPTIMIZER"} {
    func.func @graph(
        %x: tensor<3x4xf64> {tandem.role = #tandem.role<input "x">},
        %labels: tensor<3xi64> {tandem.role = #tandem.role<input "labels">},
        %w: tensor<4x5xf64> {tandem.role = #tandem.role<param "w" {requires_grad}>},
        %v: tensor<5x4xf64> {tandem.role = #tandem.role<param "v" {requires_grad}>},
        %g: tensor<5xf64> {tandem.role = #tandem.role<param "g" {requires_grad}>},
        %frozen: tensor<5xf64> {tandem.role = #tandem.role<param "frozen">},
        %s: !tandem.ref<3x5xf64> {tandem.role = #tandem.role<state "s">})
        -> (tensor<f64> {tandem.role = #tandem.role<output "loss">},
            tensor<3x4xf64> {tandem.role = #tandem.role<output "logits">}) {
      %0 = tandem.matmul %x, %w : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x5xf64>
      %n = tandem.layer_norm %0, %g, %frozen axis 1 : tensor<3x5xf64>, tensor<5xf64>, tensor<5xf64> -> tensor<3x5xf64>
      %t = tandem.gelu %n : tensor<3x5xf64>
      %old = tandem.read %s : !tandem.ref<3x5xf64>
      %m = tandem.mul %t, %old : tensor<3x5xf64>
      %e = tandem.exp %m : tensor<3x5xf64>
      tandem.write %e into %s : tensor<3x5xf64>, !tandem.ref<3x5xf64>
      %now = tandem.read %s : !tandem.ref<3x5xf64>
      %p = tandem.permute %now by [1, 0] : tensor<3x5xf64> -> tensor<5x3xf64>
      %l = tandem.matmul %p, %v {transpose_lhs} : tensor<5x3xf64>, tensor<5x4xf64> -> tensor<3x4xf64>
      %loss = tandem.cross_entropy %l, %labels : tensor<3x4xf64>, tensor<3xi64> -> tensor<f64>
      return %loss, %l : tensor<f64>, tensor<3x4xf64>
    }
  })";

std::string model(const std::string &optimizer) {
  std::string text = kModel;
  return text.replace(text.find("OPTIMIZER"), 9, optimizer);
}

const char *kToOptimize =
    "tandem-functionalize,tandem-build-joint,tandem-optimize-joint";

} // namespace

class Programs : public testing::TestWithParam<const char *> {};

// forward, backward and update give bitwise what the joint gives, and step
// gives bitwise what the three give, for a loss whose cotangent is 1.
TEST_P(Programs, EqualTheJoint) {
  TestModule t(model("adamw:lr=0.1"));
  ASSERT_TRUE(runPasses(*t.module, kToOptimize)) << t.diagnostics;
  OwningOpRef<func::FuncOp> joint = t.function("joint").clone();
  ASSERT_TRUE(runPasses(*t.module, std::string("tandem-partition-joint{kind=") +
                                       GetParam() + "}"))
      << t.diagnostics;
  func::FuncOp forward = t.function("forward"),
               backward = t.function("backward"), update = t.function("update"),
               step = t.function("step");
  Memory expected, got, whole;
  expected.draw(*joint);
  expected.at(RoleKind::Cotangent, &t.context, "loss")[0] = 1;
  expected.run(*joint);

  got.draw(*joint);
  got.at(RoleKind::Cotangent, &t.context, "loss")[0] = 1;
  got.run(forward);
  // The runtime overwrites the state before the backward runs.
  got.at(RoleKind::State, &t.context, "s") =
      got.at(RoleKind::Update, &t.context, "s");
  got.run(backward);
  for (unsigned i = 0; i < joint->getNumResults(); ++i) {
    RoleAttr role = roleOfResult(*joint, i);
    EXPECT_EQ(got.at(role).data, expected.at(role).data) << role.str();
  }

  // As the runtime starts: the states have their initial values.
  for (Memory *memory : {&got, &whole}) {
    if (memory == &whole)
      memory->draw(*joint);
    memory->at(RoleKind::State, &t.context, "adamw.lr") = array({}, {0.1});
    for (const char *step : {"adamw.step:w", "adamw.step:v", "adamw.step:g"})
      memory->at(RoleKind::State, &t.context, step) = array({}, {0});
    memory->draw(update);
  }
  got.run(update);
  whole.run(step);
  EXPECT_EQ(got.at(RoleKind::Update, &t.context, "adamw.step:w")[0], 1);
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    RoleAttr role = roleOfResult(step, i);
    EXPECT_EQ(whole.at(role).data, got.at(role).data) << role.str();
  }
  EXPECT_FALSE(findResult(step, RoleKind::Update, "frozen"));
  EXPECT_FALSE(findValue(step, "adamw.m:frozen"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Programs, testing::Values("default", "min-cut"),
                         [](const auto &info) {
                           return std::string(info.param) == "default"
                                      ? "Default"
                                      : "MinCut";
                         });

static int64_t savedBytes(const char *kind) {
  TestModule t(model("sgd"));
  EXPECT_TRUE(runPasses(*t.module, std::string(kToOptimize) +
                                       ",tandem-partition-joint{kind=" + kind +
                                       "}"));
  func::FuncOp forward = t.function("forward");
  int64_t bytes = 0;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (roleOfResult(forward, i).getKind() == RoleKind::Saved)
      bytes += byteSize(cast<RankedTensorType>(forward.getResultTypes()[i]));
  return bytes;
}

TEST(Partition, TheSmallestCutSavesLess) {
  EXPECT_LT(savedBytes("min-cut"), savedBytes("default"));
}

// One step of each optimizer on w = 1, gradient 2, against PyTorch's formulas.
TEST(Update, OneStep) {
  auto step = [](const std::string &optimizer) {
    TestModule t(R"(
      module attributes {tandem.phase = "capture", tandem.optimizer = ")" +
                 optimizer + R"("} {
        func.func @graph(%w: tensor<f64> {tandem.role = #tandem.role<param "w" {requires_grad}>})
            -> (tensor<f64> {tandem.role = #tandem.role<output "loss">}) {
          %y = tandem.mul %w, %w : tensor<f64>
          return %y : tensor<f64>
        }
      })");
    EXPECT_TRUE(runPasses(*t.module,
                          std::string(kToOptimize) + ",tandem-partition-joint"))
        << t.diagnostics;
    func::FuncOp func = t.function("step");
    llvm::SmallVector<Array> arguments = {array({}, {1})};
    for (unsigned i = 1; i < func.getNumArguments(); ++i) {
      auto init = cast<DictionaryAttr>(
          roleOfArgument(func, i).getProperties().get("init"));
      arguments.push_back(
          array({}, {cast<FloatAttr>(init.get("value")).getValueAsDouble()}));
    }
    auto results = reference::evaluate(func, arguments);
    EXPECT_TRUE(succeeded(results));
    return (*results)[*findResult(func, RoleKind::Update, "w")][0];
  };
  EXPECT_NEAR(step("sgd:lr=0.1"), 1 - 0.1 * 2, 1e-9);
  EXPECT_NEAR(step("sgd:lr=0.1,weight_decay=0.5"), 1 - 0.1 * 2.5, 1e-9);
  EXPECT_NEAR(step("momentum:lr=0.1"), 1 - 0.1 * 2, 1e-9);
  EXPECT_NEAR(step("momentum:lr=0.1,momentum=0.5,nesterov=true"), 1 - 0.1 * 3,
              1e-9);
  EXPECT_NEAR(step("adam:lr=0.1"), 0.9, 1e-6);
  EXPECT_NEAR(step("adamw:lr=0.1,weight_decay=0.5"), 0.95 - 0.1, 1e-6);
}

// A step with writes of both passes: the backward finds what the forward wrote
// of s, and reads w as it was; the update finds what the backward wrote of w.
TEST_P(Programs, B01_B05_StepPassesWritesOn) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize", tandem.optimizer = "sgd:lr=0.5"} {
      func.func @graph(
          %w: tensor<f64> {tandem.role = #tandem.role<param "w" {requires_grad}>},
          %s: tensor<f64> {tandem.role = #tandem.role<state "s">})
          -> (tensor<f64> {tandem.role = #tandem.role<output "loss">},
              tensor<f64> {tandem.role = #tandem.role<update of "s">}) {
        %y = tandem.custom_vjp "f" (%w) forward {
        ^bb0(%a: tensor<f64>):
          %b = tandem.mul %a, %a : tensor<f64>
          tandem.yield %b : tensor<f64>
        } backward {
        ^bb0(%dy: tensor<f64>, %w2: tensor<f64>, %s2: tensor<f64>):
          %ten = tandem.constant dense<10.0> : tensor<f64>
          %0 = tandem.mul %w2, %ten : tensor<f64>
          %1 = tandem.mul %s2, %ten : tensor<f64>
          tandem.yield %dy, %0, %1 : tensor<f64>, tensor<f64>, tensor<f64>
        } {outputs = 1, saved = 0, differentiable = 1, states = [{name = "w", written}, {name = "s", written}]}
          : (tensor<f64>), () -> tensor<f64>
        %e = tandem.mul %y, %w : tensor<f64>
        %one = tandem.constant dense<1.0> : tensor<f64>
        %n = tandem.add %s, %one : tensor<f64>
        return %e, %n : tensor<f64>, tensor<f64>
      }
    })");
  ASSERT_TRUE(t.module) << t.diagnostics;
  ASSERT_TRUE(runPasses(*t.module, "tandem-build-joint,tandem-optimize-joint,"
                                   "tandem-partition-joint{kind=" +
                                       std::string(GetParam()) + "}"))
      << t.diagnostics;
  auto step = t.function("step");
  Memory memory;
  memory.at(RoleKind::Param, &t.context, "w") = array({}, {3});
  memory.at(RoleKind::State, &t.context, "s") = array({}, {4});
  memory.at(RoleKind::State, &t.context, "sgd.lr") = array({}, {0.5});
  memory.run(step);
  // g(w) = y + dy with dy = w, as the op's own backward passes it on: 9 + 3.
  EXPECT_EQ(memory.at(RoleKind::Update, &t.context, "w")[0], 30 - 0.5 * 12);
  EXPECT_EQ(memory.at(RoleKind::Update, &t.context, "s")[0], 50);
  EXPECT_EQ(step.getNumResults(), 3u);
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_FALSE(roleOfResult(step, i).has("pass"));
  // w is what the forward saw in the backward, too.
  auto backward = t.function("backward");
  EXPECT_TRUE(findArgument(backward, RoleKind::Saved, "w"));
}

//===----------------------------------------------------------------------===//
// The cut, and long graphs
//===----------------------------------------------------------------------===//

TEST(MaxFlow, SmallestCutNearestToTheSink) {
  // source -4-> a -2-> b -2-> sink, and a second way a -1-> sink.
  MaxFlow flow;
  unsigned a = flow.addNode(), b = flow.addNode();
  flow.addEdge(MaxFlow::kSource, a, 4);
  flow.addEdge(a, b, 2);
  flow.addEdge(b, MaxFlow::kSink, 2);
  flow.addEdge(a, MaxFlow::kSink, 1);
  EXPECT_EQ(flow.run(), 3);
  llvm::BitVector sinkSide = flow.sinkSide();
  EXPECT_FALSE(sinkSide.test(a));
  EXPECT_FALSE(sinkSide.test(b));
}

TEST(MaxFlow, FindsTheWayBack) {
  // The middle edge is used by the first path and given back by the second.
  MaxFlow flow;
  unsigned a = flow.addNode(), b = flow.addNode(), c = flow.addNode(),
           d = flow.addNode();
  flow.addEdge(MaxFlow::kSource, a, 1);
  flow.addEdge(MaxFlow::kSource, b, 1);
  flow.addEdge(a, c, 1);
  flow.addEdge(b, c, 1);
  flow.addEdge(a, d, 1);
  flow.addEdge(c, MaxFlow::kSink, 1);
  flow.addEdge(d, MaxFlow::kSink, 1);
  EXPECT_EQ(flow.run(), 2);
}

/// The seconds of processor time that a chain of `length` ops takes from graph
/// to programs.
static double secondsForChain(int length, const char *kind) {
  std::string text =
      "module attributes {tandem.phase = \"functionalize\"} {\n"
      "func.func @graph(%v0: tensor<4x4xf32> {tandem.role = #tandem.role<param "
      "\"w\" {requires_grad}>}) -> (tensor<4x4xf32> {tandem.role = "
      "#tandem.role<output \"y\">}) {\n";
  const char *ops[] = {"tanh", "sin", "exp", "sigmoid"};
  for (int i = 0; i < length; ++i) {
    std::string from = "%v" + std::to_string(i),
                to = "%v" + std::to_string(i + 1);
    text += i % 10 == 9 ? to + " = tandem.matmul " + from +
                              ", %v0 : tensor<4x4xf32>, "
                              "tensor<4x4xf32> -> tensor<4x4xf32>\n"
                        : to + " = tandem." + ops[i % 4] + " " + from +
                              " : tensor<4x4xf32>\n";
  }
  text += "return %v" + std::to_string(length) + " : tensor<4x4xf32>\n}\n}";
  TestModule t(text);
  EXPECT_TRUE(t.module) << t.diagnostics;
  std::clock_t start = std::clock();
  EXPECT_TRUE(runPasses(*t.module, std::string("tandem-build-joint,"
                                               "tandem-optimize-joint,"
                                               "tandem-partition-joint{kind=") +
                                       kind + "}"))
      << t.diagnostics;
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Four times the ops take about four times as long (sixteen times, if anything
// were quadratic), and no recursion follows the chain.
TEST(LongChains, TakeLinearTime) {
  for (const char *kind : {"default", "min-cut"}) {
    double quarter = secondsForChain(5000, kind);
    double whole = secondsForChain(20000, kind);
    EXPECT_LT(whole, 9 * quarter + 0.5) << kind << ", quarter " << quarter;
  }
}
