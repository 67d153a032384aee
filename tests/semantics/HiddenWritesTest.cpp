//===- HiddenWritesTest.cpp - rows M05, M06, M17 to M20 -------------------===//
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;

namespace {
class Writes : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Writes);

TEST_P(Writes, M05_WriteThroughDetach) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %two = tandem.constant dense<2.0> : tensor<2xf32>
        %d = tandem.detach %x : !tandem.ref<2xf32>
        %0 = tandem.read %d : !tandem.ref<2xf32>
        %1 = tandem.mul %0, %two : tensor<2xf32>
        tandem.write %1 into %d : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.sin %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32, {.requiresGrad = true});
                  x.detach().mul_(2.0);
                  t.output("o", sin(x));
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0.5, -1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {0.841471, -0.909297});
  EXPECT_NUMBERS(m->contents("x"), {1, -2});
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0.540302, -0.416147});
}

TEST_P(Writes, M06_VisibleHiddenAndDetachedWrites) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %one = tandem.constant dense<1.0> : tensor<2xf32>
        %two = tandem.constant dense<2.0> : tensor<2xf32>
        %three = tandem.constant dense<3.0> : tensor<2xf32>
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %1 = tandem.mul %0, %two : tensor<2xf32>
        tandem.write %1 into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x {tandem.no_grad} : !tandem.ref<2xf32>
        %3 = tandem.add %2, %one {tandem.no_grad} : tensor<2xf32>
        tandem.write %3 into %x {tandem.no_grad} : tensor<2xf32>, !tandem.ref<2xf32>
        %d = tandem.detach %x : !tandem.ref<2xf32>
        %4 = tandem.read %d : !tandem.ref<2xf32>
        %5 = tandem.mul %4, %three : tensor<2xf32>
        tandem.write %5 into %d : tensor<2xf32>, !tandem.ref<2xf32>
        %6 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.mul %6, %6 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32, {.requiresGrad = true});
                  x.mul_(2.0);
                  {
                    NoGradScope scope = t.noGrad();
                    x.add_(t.constant({2}, 1));
                  }
                  x.detach().mul_(3.0);
                  t.output("o", x * x);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, -2});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {9, -9});
  EXPECT_NUMBERS(m->output("o"), {81, 81});
  // 2 * 9 for the square, 2 for the visible write, nothing for the others.
  ASSERT_EQ(m->backward({{"o", {1, 1}}, {"update of x", {0, 0}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {36, -36});
  m->set("x", {1, -2});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {0, 0}}, {"update of x", {1, 5}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {2, 10});
}

TEST_P(Writes, M17_AddingWhatRequiresGrad) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">},
                       %y: tensor<2xf32> {tandem.role = #tandem.role<input "y" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %1 = tandem.add %0, %y : tensor<2xf32>
        tandem.write %1 into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.mul %2, %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2});
                  Tensor y =
                      t.input("y", {2}, DType::F32, {.requiresGrad = true});
                  x.add_(y);
                  t.output("o", x * x);
                }};
  std::string text = printed(source, "joint");
  EXPECT_FALSE(contains(text, "role<grad of \"x\"")) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->set("y", {3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {4, 6});
  EXPECT_NUMBERS(m->output("o"), {16, 36});
  if (auto *code = dynamic_cast<CompiledMachine *>(m.get())) {
    EXPECT_TRUE(code->tensors["x"].requiresGrad());
    EXPECT_FALSE(code->tensors["x"].isLeaf());
  }
  ASSERT_EQ(m->backward({{"o", {1, 1}}, {"update of x", {100, 200}}}), "");
  EXPECT_NUMBERS(m->gradient("y"), {108, 212});
  EXPECT_FALSE(m->gradient("x"));
}

//===----------------------------------------------------------------------===//
// M18: batch norm
//===----------------------------------------------------------------------===//

static const Source batchNormOf{
    R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<4x2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                       %w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                       %mean: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "mean">},
                       %var: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "var">},
                       %count: !tandem.ref<i64> {tandem.role = #tandem.role<state "count">})
          -> (tensor<4x2xf32> {tandem.role = #tandem.role<output "o">}) {
        %zero = tandem.constant dense<0.0> : tensor<2xf32>
        %keep = tandem.constant dense<0.9> : tensor<2xf32>
        %momentum = tandem.constant dense<0.1> : tensor<2xf32>
        %unbiased = tandem.constant dense<0.133333333> : tensor<2xf32>
        %one = tandem.constant dense<1> : tensor<i64>
        %m0 = tandem.read %mean : !tandem.ref<2xf32>
        %v0 = tandem.read %var : !tandem.ref<2xf32>
        %n0 = tandem.read %count : !tandem.ref<i64>
        %n1 = tandem.add %n0, %one {tandem.no_grad} : tensor<i64>
        tandem.write %n1 into %count {tandem.no_grad} : tensor<i64>, !tandem.ref<i64>
        %y, %m, %v = tandem.batch_norm %x, %w, %zero, %m0, %v0 {training} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
        %m1 = tandem.mul %m0, %keep {tandem.no_grad} : tensor<2xf32>
        %m2 = tandem.mul %m, %momentum {tandem.no_grad} : tensor<2xf32>
        %m3 = tandem.add %m1, %m2 {tandem.no_grad} : tensor<2xf32>
        tandem.write %m3 into %mean {tandem.no_grad} : tensor<2xf32>, !tandem.ref<2xf32>
        %v1 = tandem.mul %v0, %keep {tandem.no_grad} : tensor<2xf32>
        %v2 = tandem.mul %v, %unbiased {tandem.no_grad} : tensor<2xf32>
        %v3 = tandem.add %v1, %v2 {tandem.no_grad} : tensor<2xf32>
        tandem.write %v3 into %var {tandem.no_grad} : tensor<2xf32>, !tandem.ref<2xf32>
        return %y : tensor<4x2xf32>
      }
    })",
    [](Trace &t) {
      Tensor x = t.input("x", {4, 2}, DType::F32, {.requiresGrad = true});
      Tensor w = t.parameter("w", {2}, Init::constant(1)),
             mean = t.state("mean", {2}, Init::constant(0)),
             var = t.state("var", {2}, Init::constant(1)),
             count = t.state("count", {}, Init::constant(0), DType::I64);
      {
        NoGradScope scope = t.noGrad();
        count.add_(t.constant({}, 1, DType::I64));
      }
      t.output("o", batchNorm(x, w, t.constant({2}, 0), mean, var));
    }};

static void setBatchNorm(Machine &m) {
  m.set("x", {1, 2, 3, 5, 0, 1, 2, 4});
  m.set("w", {1.5, -0.5});
  m.set("mean", {0.5, -1});
  m.set("var", {1, 2});
  m.set("count", {7});
}

TEST_P(Writes, M18_BatchNormStatistics) {
  std::string text = printed(batchNormOf, "joint");
  EXPECT_FALSE(contains(text, "role<cotangent of \"update of")) << text;
  auto m = start(batchNormOf);
  ASSERT_TRUE(m);
  setBatchNorm(*m);
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {-0.670818, 0.316227, 2.012453, -0.632454,
                                  -2.012453, 0.632454, 0.670818, -0.316227});
  EXPECT_NUMBERS(m->contents("mean"), {0.6, -0.6});
  EXPECT_NUMBERS(m->contents("var"), {1.066667, 2.133333});
  EXPECT_NUMBERS(m->contents("count"), {8});
  ASSERT_EQ(m->backward({{"o", {1, 0, 2, 1, 0, 3, 1, -1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0.402487, 0.395283, 0.134173, -0.395283,
                                    -0.134173, -0.395285, -0.402487, 0.395285});
  EXPECT_NUMBERS(m->gradient("w"), {2.683271, -3.162271});
}

TEST_P(Writes, M18_TheBackwardUsesTheForwardsStatistics) {
  // The statistic is read, used, and only then moved on.
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                       %s: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "s">},
                       %n: !tandem.ref<2xi64> {tandem.role = #tandem.role<input "n">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %s : !tandem.ref<2xf32>
        %o = tandem.mul %x, %0 : tensor<2xf32>
        %1 = tandem.add %0, %x {tandem.no_grad} : tensor<2xf32>
        tandem.write %1 into %s {tandem.no_grad} : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %n : !tandem.ref<2xi64>
        %c = tandem.cast %x : tensor<2xf32> to tensor<2xi64>
        %3 = tandem.add %2, %c : tensor<2xi64>
        tandem.write %3 into %n : tensor<2xi64>, !tandem.ref<2xi64>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32, {.requiresGrad = true});
                  Tensor s = t.state("s", {2}, Init::constant(0));
                  Tensor n = t.input("n", {2}, DType::I64);
                  t.output("o", x * s);
                  {
                    NoGradScope scope = t.noGrad();
                    s.add_(x);
                  }
                  n.add_(cast(x, DType::I64));
                }};
  // The integers depend on x and are written where gradients are on, and still
  // have no cotangent.
  std::string text = printed(source, "joint");
  EXPECT_EQ(count(text, "role<cotangent"), 1) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->set("s", {10, 20});
  m->set("n", {3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("s"), {11, 22});
  EXPECT_NUMBERS(m->contents("n"), {4, 6});
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {10, 20});
  EXPECT_NUMBERS(m->contents("s"), {11, 22});
}

//===----------------------------------------------------------------------===//
// M19, M20
//===----------------------------------------------------------------------===//

TEST_P(Writes, M19_WriteToWhatAnOpHandsBack) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "y">},
                       %v: tensor<2xf32> {tandem.role = #tandem.role<input "v">}) {
        %0 = tandem.reshape %x to [2] : !tandem.ref<2xf32> -> !tandem.ref<2xf32>
        tandem.write %v into %0 : tensor<2xf32>, !tandem.ref<2xf32>
        %1 = tandem.broadcast %y to [2] along [0] : !tandem.ref<2xf32> -> !tandem.ref<2xf32>
        tandem.write %v into %1 : tensor<2xf32>, !tandem.ref<2xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2}), y = t.input("y", {2}),
                         v = t.input("v", {2});
                  dropout(x, 0.0).copy_(v);
                  dropout(y, 0.5, /*training=*/false).copy_(v);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->set("y", {3, 4});
  m->set("v", {5, 6});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {5, 6});
  EXPECT_NUMBERS(m->contents("y"), {5, 6});
}

TEST_P(Writes, M20_WriteOnAUserStream) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x {tandem.stream = 1 : i64} : !tandem.ref<2xf32>
        %1 = tandem.add %0, %0 {tandem.stream = 1 : i64} : tensor<2xf32>
        tandem.write %1 into %x {tandem.stream = 1 : i64} : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.mul %2, %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2});
                  {
                    StreamScope scope = t.stream(1);
                    x.add_(x);
                  }
                  t.output("o", x * x);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {2, 4});
  EXPECT_NUMBERS(m->output("o"), {4, 16});
  // The next op of the caller's.
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {4, 8});
}
