//===- MutationCallsTest.cpp - what only calls have: rows M ---------------===//
//
// Handles, versions, strides and storage of the caller's tensors.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/CallPrograms.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::calls;

namespace {
class MutationCalls : public RowTest {};
} // namespace
TANDEM_COMPILED_WAYS(MutationCalls);

TEST_P(MutationCalls, M03_VisibleWriteToALeafInput) {
  std::string text;
  auto m = compiled(doubling("visible", text));
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->setLeaf("x");
  uint64_t version = m->tensors["x"].version();
  std::string error = m->forward();
  EXPECT_PART(error, "input 'x' (index 0)");
  EXPECT_PART(error, "leaf");
  EXPECT_PART(error, "'tandem.write' at ");
  EXPECT_PART(error, isTraced() ? "CallPrograms.h:" : "row.mlir:8:");
  EXPECT_NUMBERS(m->contents("x"), {1, 2});
  EXPECT_EQ(m->tensors["x"].version(), version);
  EXPECT_TRUE(m->outputs.empty());
  EXPECT_FALSE(m->context.live());
  // What is no leaf may be written.
  m->tensors["x"].setMade(true);
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {2, 4});
}

TEST_P(MutationCalls, M04_TheVersionIsBumped) {
  std::string text;
  auto m = compiled(doubling("no_grad", text));
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  uint64_t version = m->tensors["x"].version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {2, 4});
  EXPECT_GT(m->tensors["x"].version(), version);
}

TEST_P(MutationCalls, M05_TheVersionIsBumpedHereToo) {
  std::string text;
  auto square = compiled(squaring);
  auto m = compiled(doubling("detached", text));
  ASSERT_TRUE(square && m);
  square->set("x", {1, 2});
  ASSERT_EQ(square->forward(), "");
  // The same tensor, written by another program while a context has it.
  m->tensors["x"] = square->tensors["x"];
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(square->contents("x"), {2, 4});
  std::string error = square->backward({{"o", {1, 1}}}, {});
  EXPECT_PART(error, "'x'");
  EXPECT_PART(error, "version");
}

TEST_P(MutationCalls, M07_AStridedInput) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x6xf32> {tandem.role = #tandem.role<input "x">},
                       %v: tensor<2x2xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<12xf32> {tandem.role = #tandem.role<output "f">}) {
        %r = tandem.reshape %x to [3, 4] : !tandem.ref<2x6xf32> -> !tandem.ref<3x4xf32>
        %p = tandem.permute %r by [1, 0] : !tandem.ref<3x4xf32> -> !tandem.ref<4x3xf32>
        %s = tandem.slice %p from [1, 0] to [3, 2] step [1, 1] : !tandem.ref<4x3xf32> -> !tandem.ref<2x2xf32>
        tandem.write %v into %s : tensor<2x2xf32>, !tandem.ref<2x2xf32>
        %f = tandem.reshape %x to [12] : !tandem.ref<2x6xf32> -> !tandem.ref<12xf32>
        %1 = tandem.read %f : !tandem.ref<12xf32>
        return %1 : tensor<12xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 6});
                  Tensor v = t.input("v", {2, 2});
                  Tensor p = x.view({3, 4}).permute({1, 0});
                  p.slice(0, 1, 3).slice(1, 0, 2).copy_(v);
                  t.output("f", x.view({12}).clone());
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  // Every other element of two parts of a larger tensor.
  m->setStorage("base", upTo(30), DType::F32);
  m->setView("x", "base", {2, 6}, {15, 2}, 1);
  m->set("v", {100, 200, 300, 400});
  runtime::Tensor base = m->tensors["base"];
  uint64_t version = base.version();
  ASSERT_EQ(m->forward(), "");
  Numbers expected = upTo(30);
  // x holds 1, 3, 5, 7, 9, 11, 16, 18, ...: its elements 1, 5, 2 and 6.
  expected[3] = 100;
  expected[11] = 200;
  expected[5] = 300;
  expected[16] = 400;
  EXPECT_EQ(numbersOf(base), expected);
  EXPECT_GT(base.version(), version);
  EXPECT_NUMBERS(m->output("f"),
                 {1, 100, 300, 7, 9, 200, 400, 18, 20, 22, 24, 26});
}

TEST_P(MutationCalls, M08_NoCopy) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">}) {
        %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        return
      }
    })",
                [](Trace &t) {
                  t.input("x", {2, 3}).transpose_(0, 1);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", upTo(6));
  runtime::Tensor before = m->tensors["x"];
  uint64_t version = before.version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->tensors["x"].storage(), before.storage());
  EXPECT_EQ(m->tensors["x"].data(), before.data());
  EXPECT_EQ(m->strides("x"), (Shape{1, 3}));
  EXPECT_EQ(before.version(), version);
  const artifact::Program *forward = m->model.manifest().findProgram("forward");
  EXPECT_TRUE(forward->launches.empty());
  EXPECT_EQ(forward->arenaBytes, 0);
}

TEST_P(MutationCalls, M10_NoVersionBumpAndNoCode) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "y">}) {
        %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        %1 = tandem.transpose_ %0 dims 0, 1 : !tandem.ref<3x2xf32> -> !tandem.ref<2x3xf32>
        %2 = tandem.read %1 : !tandem.ref<2x3xf32>
        tandem.write %2 into %1 : tensor<2x3xf32>, !tandem.ref<2x3xf32>
        %old = tandem.reshape %y to [2, 3] : !tandem.ref<2x3xf32> -> !tandem.ref<2x3xf32>
        %3 = tandem.set_ %y to %1 : !tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>
        %4 = tandem.set_ %3 to %old : !tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 3}), y = t.input("y", {2, 3});
                  x.transpose_(0, 1);
                  x.transpose_(0, 1);
                  x.copy_(x);
                  Tensor old = y.view({2, 3});
                  y.set_(x);
                  y.set_(old);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", upTo(6));
  m->set("y", upTo(6));
  runtime::Tensor x = m->tensors["x"], y = m->tensors["y"];
  uint64_t versions = x.version() + y.version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(x.version() + y.version(), versions);
  EXPECT_EQ(m->tensors["y"].storage(), y.storage());
  EXPECT_TRUE(m->model.manifest().findProgram("forward")->launches.empty());
  EXPECT_TRUE(m->model.manifest().kernels.empty());
}

TEST_P(MutationCalls, M15_NoSecondBuffer) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">})
          -> (!tandem.ref<3xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<3xf32>
        %1 = tandem.add %0, %0 : tensor<3xf32>
        tandem.write %1 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return %x : !tandem.ref<3xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  x.add_(x);
                  t.output("o", x);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  const artifact::Program *forward = m->model.manifest().findProgram("forward");
  ASSERT_EQ(forward->results.size(), 1U);
  EXPECT_TRUE(forward->results[0].inPlace);
  EXPECT_EQ(forward->buffers.size(), 1U);
  EXPECT_EQ(forward->launches.size(), 1U);
  m->set("x", {1, 2, 3});
  const void *data = m->tensors["x"].data();
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->outputTensors["o"].data(), data);
  EXPECT_EQ(m->tensors["x"].data(), data);
  // A later write shows in both.
  ASSERT_TRUE(m->outputTensors["o"].fill(7).ok());
  EXPECT_NUMBERS(m->contents("x"), {7, 7, 7});
}

TEST_P(MutationCalls, M16_NoContextAndNoCopyOfOthers) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y">}) {
        %0 = tandem.read %y : !tandem.ref<3xf32>
        %1 = tandem.sin %0 : tensor<3xf32>
        tandem.write %1 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  x.copy_(sin(t.input("y", {3})));
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  const artifact::Program *forward = m->model.manifest().findProgram("forward");
  EXPECT_EQ(forward->results.size(), 1U);
  EXPECT_EQ(forward->launches.size(), 1U);
  EXPECT_EQ(forward->arenaBytes, 0);
  EXPECT_FALSE(m->model.hasProgram("backward"));
  m->set("x", {1, 2, 3});
  m->set("y", {0, 0, 0});
  uint64_t version = m->tensors["y"].version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {0, 0, 0});
  EXPECT_EQ(m->tensors["y"].version(), version);
  EXPECT_FALSE(m->context.live());
}

TEST_P(MutationCalls, M18_EvaluateWritesNothing) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<4x1xf32> {tandem.role = #tandem.role<input "x">},
                       %w: tensor<1xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                       %mean: !tandem.ref<1xf32> {tandem.role = #tandem.role<state "mean">},
                       %var: !tandem.ref<1xf32> {tandem.role = #tandem.role<state "var">},
                       %count: !tandem.ref<i64> {tandem.role = #tandem.role<state "count">})
          -> (tensor<4x1xf32> {tandem.role = #tandem.role<output "o">}) {
        %zero = tandem.constant dense<0.0> : tensor<1xf32>
        %one = tandem.constant dense<1> : tensor<i64>
        %m0 = tandem.read %mean : !tandem.ref<1xf32>
        %v0 = tandem.read %var : !tandem.ref<1xf32>
        %n0 = tandem.read %count : !tandem.ref<i64>
        %n1 = tandem.add %n0, %one {tandem.no_grad} : tensor<i64>
        tandem.write %n1 into %count {tandem.no_grad} : tensor<i64>, !tandem.ref<i64>
        %y, %m, %v = tandem.batch_norm %x, %w, %zero, %m0, %v0 {training} : (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>)
        tandem.write %m into %mean {tandem.no_grad} : tensor<1xf32>, !tandem.ref<1xf32>
        tandem.write %v into %var {tandem.no_grad} : tensor<1xf32>, !tandem.ref<1xf32>
        return %y : tensor<4x1xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {4, 1});
                  Tensor w = t.parameter("w", {1}, Init::constant(1)),
                         mean = t.state("mean", {1}, Init::constant(0)),
                         var = t.state("var", {1}, Init::constant(1)),
                         count = t.state("count", {}, Init::constant(0),
                                         DType::I64);
                  {
                    NoGradScope scope = t.noGrad();
                    count.add_(t.constant({}, 1, DType::I64));
                  }
                  t.output("o", batchNorm(x, w, t.constant({1}, 0), mean, var));
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 3, 0, 2});
  m->set("w", {1.5});
  m->set("mean", {0.5});
  m->set("var", {1});
  m->set("count", {7});
  std::vector<uint64_t> versions;
  for (const char *state : {"mean", "var", "count"})
    versions.push_back(m->tensors[state].version());
  runtime::Tensor o;
  Status status = m->model.run(
      "evaluate", std::vector<runtime::Argument>{{"x", &m->tensors["x"]}},
      std::vector<runtime::Destination>{{"o", &o}});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NUMBERS(numbersOf(o), {0.749996, 3.749981, -0.749996, 2.249989});
  EXPECT_NUMBERS(m->contents("mean"), {0.5});
  EXPECT_NUMBERS(m->contents("var"), {1});
  EXPECT_NUMBERS(m->contents("count"), {7});
  for (const char *state : {"mean", "var", "count"}) {
    EXPECT_EQ(m->tensors[state].version(), versions.front()) << state;
    versions.erase(versions.begin());
  }
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("mean"), {isTraced() ? 0.6 : 1.5});
  EXPECT_NUMBERS(m->contents("count"), {8});
}
