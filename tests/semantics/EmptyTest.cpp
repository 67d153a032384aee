//===- EmptyTest.cpp - programs whose tensors have no elements ------------===//
//
// Inputs, params, outputs and gradients may be empty; what is summed over them
// is 0, and what they do not reach has the gradient 0.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "tests/semantics/Harness.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Empty : public RowTest {};
class EmptyCalls : public RowTest {};

/// A batch of no rows through a layer whose inner dimension is empty as well.
Source layers() {
  return {
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: tensor<0x3xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %w: tensor<2x3xf32> {tandem.role = #tandem.role<param "w" {requires_grad, init = {kind = "constant", value = 1.0}}>},
        %u: tensor<2x0xf32> {tandem.role = #tandem.role<param "u" {requires_grad, init = {kind = "constant", value = 1.0}}>},
        %b: tensor<2xf32> {tandem.role = #tandem.role<param "b" {requires_grad, init = {kind = "constant", value = 1.0}}>})
        -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
            tensor<0x2xf32> {tandem.role = #tandem.role<output "y">}) {
      %l = tandem.linear %x, %w : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<0x2xf32>
      %y = tandem.softmax %l dim 1 : tensor<0x2xf32>
      %s = tandem.reduce_sum %y over [0, 1] : tensor<0x2xf32> -> tensor<f32>
      %r = tandem.reduce_sum %u over [1] : tensor<2x0xf32> -> tensor<2xf32>
      %m = tandem.mul %b, %b : tensor<2xf32>
      %a = tandem.add %r, %m : tensor<2xf32>
      %t = tandem.reduce_sum %a over [0] : tensor<2xf32> -> tensor<f32>
      %o = tandem.add %s, %t : tensor<f32>
      return %o, %y : tensor<f32>, tensor<0x2xf32>
    }})",
      [](Trace &t) {
        Tensor x = t.input("x", {0, 3}, DType::F32, {.requiresGrad = true});
        Tensor w = t.parameter("w", {2, 3}, Init::constant(1)),
               u = t.parameter("u", {2, 0}, Init::constant(1)),
               b = t.parameter("b", {2}, Init::constant(1));
        Tensor y = softmax(linear(x, w), 1);
        t.output("loss", sum(y) + sum(sum(u, {1}) + b * b));
        t.output("y", y);
      }};
}

} // namespace
TANDEM_ALL_WAYS(Empty);
TANDEM_WAYS(EmptyCalls, TANDEM_TEXT_AND_TRACED(Cpu),
            TANDEM_TEXT_AND_TRACED(Cuda));

TEST_P(Empty, ForwardAndBackward) {
  auto m = start(layers());
  ASSERT_TRUE(m);
  m->set("x", {});
  m->set("w", {1, 2, 3, 4, 5, 6});
  m->set("u", {});
  m->set("b", {2, 3});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("loss"), {13});
  EXPECT_NUMBERS(m->output("y"), {});
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {});
  EXPECT_NUMBERS(m->gradient("w"), {0, 0, 0, 0, 0, 0});
  EXPECT_NUMBERS(m->gradient("u"), {});
  EXPECT_NUMBERS(m->gradient("b"), {4, 6});
}

TEST_P(EmptyCalls, StepsWithAnOptimizer) {
  for (const char *optimizer : {"momentum:lr=0.1", "adamw:lr=0.1"}) {
    CompileOptions options;
    options.optimizer = optimizer;
    auto m = compiled(layers(), options);
    ASSERT_TRUE(m);
    m->set("x", {});
    m->set("w", {1, 2, 3, 4, 5, 6});
    m->set("u", {});
    m->set("b", {2, 3});
    runtime::Argument inputs[] = {{"x", &m->tensors["x"]}};
    ASSERT_TRUE(m->model.step(inputs, {}).ok()) << optimizer;
    EXPECT_EQ(m->contents("u"), Numbers{});
    EXPECT_NE(m->contents("b"), (Numbers{2, 3}));
  }
}

// Other libraries may give empty tensors without memory.
TEST_P(EmptyCalls, DLPackWithoutMemory) {
  int64_t shape[] = {0, 3};
  DLManagedTensor managed{}; // outlives the machine
  auto m = compiled(layers());
  ASSERT_TRUE(m);
  m->set("b", {2, 3});
  m->set("w", {1, 2, 3, 4, 5, 6});
  managed.dl_tensor.device = {
      isCuda() ? static_cast<DLDeviceType>(kDLExtDev) : kDLCPU, 0};
  managed.dl_tensor.ndim = 2;
  managed.dl_tensor.dtype = {kDLFloat, 32, 1};
  managed.dl_tensor.shape = shape;
  Result<runtime::Tensor> x = runtime::Tensor::fromDLPack(&managed);
  ASSERT_TRUE(x.ok()) << x.status().message();
  EXPECT_EQ(x->elements(), 0);
  ASSERT_TRUE(x->setRequiresGrad(true).ok());
  m->tensors["x"] = *x;
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("loss"), {13});
  Result<DLManagedTensor *> y = m->outputTensors["y"].toDLPack();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)->dl_tensor.shape[0], 0);
  (*y)->deleter(*y);
}

//===----------------------------------------------------------------------===//
// Means, views and storage
//===----------------------------------------------------------------------===//

TEST_P(Empty, ViewsWritesAndMeans) {
  Source source{
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: !tandem.ref<4x2xf32> {tandem.role = #tandem.role<input "x">},
        %e: tensor<0x2xf32> {tandem.role = #tandem.role<input "e">})
        -> (tensor<4x2xf32> {tandem.role = #tandem.role<output "joined">},
            tensor<2xf32> {tandem.role = #tandem.role<output "mean">},
            tensor<0x2xf32> {tandem.role = #tandem.role<output "part">}) {
      %v = tandem.slice %x from [2, 0] to [2, 2] step [1, 1] : !tandem.ref<4x2xf32> -> !tandem.ref<0x2xf32>
      tandem.write %e into %v : tensor<0x2xf32>, !tandem.ref<0x2xf32>
      %p = tandem.read %v : !tandem.ref<0x2xf32>
      %r = tandem.read %x : !tandem.ref<4x2xf32>
      %j = tandem.concat %e, %r, %p dim 0 : tensor<0x2xf32>, tensor<4x2xf32>, tensor<0x2xf32> -> tensor<4x2xf32>
      %m = tandem.reduce_mean %p over [0] : tensor<0x2xf32> -> tensor<2xf32>
      return %j, %m, %p : tensor<4x2xf32>, tensor<2xf32>, tensor<0x2xf32>
    }})",
      [](Trace &t) {
        Tensor x = t.input("x", {4, 2}), e = t.input("e", {0, 2});
        Tensor v = x.slice(0, 2, 2);
        v.copy_(e);
        t.output("joined", concat({e, x, v}, 0));
        t.output("mean", mean(v, {0}));
        t.output("part", v + 1.0);
      }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3, 4, 5, 6, 7, 8});
  m->set("e", {});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("joined"), {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_NUMBERS(m->output("part"), {});
  EXPECT_NUMBERS(m->contents("x"), {1, 2, 3, 4, 5, 6, 7, 8});
  Numbers mean = m->output("mean");
  ASSERT_EQ(mean.size(), 2u);
  EXPECT_TRUE(std::isnan(mean[0]) && std::isnan(mean[1]));
}

// An attention over no keys is 0; its queries have the gradient 0.
TEST_P(Empty, AttentionOverNothing) {
  Source source{
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %q: tensor<1x2x4xf32> {tandem.role = #tandem.role<input "q" {requires_grad}>},
        %k: tensor<1x0x4xf32> {tandem.role = #tandem.role<input "k">})
        -> (tensor<1x2x4xf32> {tandem.role = #tandem.role<output "loss">}) {
      %y = tandem.attention %q, %k, %k : tensor<1x2x4xf32>, tensor<1x0x4xf32>, tensor<1x0x4xf32> -> tensor<1x2x4xf32>
      return %y : tensor<1x2x4xf32>
    }})",
      [](Trace &t) {
        Tensor q = t.input("q", {1, 2, 4}, DType::F32, {.requiresGrad = true});
        Tensor k = t.input("k", {1, 0, 4});
        t.output("loss", attention(q, k, k));
      }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("q", {1, 2, 3, 4, 5, 6, 7, 8});
  m->set("k", {});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("loss"), {0, 0, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(m->backward({{"loss", {1, 1, 1, 1, 1, 1, 1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("q"), {0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_P(EmptyCalls, TheLargestOfNothingIsAMistake) {
  Source source{
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: tensor<2x0xf32> {tandem.role = #tandem.role<input "x">})
        -> (tensor<2xi64> {tandem.role = #tandem.role<output "y">}) {
      %y = tandem.argmax %x dim 1 : tensor<2x0xf32> -> tensor<2xi64>
      return %y : tensor<2xi64>
    }})",
      [](Trace &t) {
        Tensor x = t.input("x", {2, 0});
        t.output("y", argmax(x, 1));
        t.output("z", max(x, {1}));
      }};
  EXPECT_PART(errorOf(source), "expected at least one element along dimension "
                               "1, but got [2, 0]");
  if (isTraced())
    EXPECT_PART(errorOf(source), "expected at least one element over [1], but "
                                 "got 'tensor<2x0xf32>'");
}

// An output that would be a view of nothing is a tensor of its own.
TEST_P(Empty, OutputsThatAreViews) {
  Source source{
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: !tandem.ref<0x3xf32> {tandem.role = #tandem.role<input "x">})
        -> (!tandem.ref<5x0xf32> {tandem.role = #tandem.role<output "y">},
            !tandem.ref<3x0xf32> {tandem.role = #tandem.role<output "z">}) {
      %y = tandem.reshape %x to [5, 0] : !tandem.ref<0x3xf32> -> !tandem.ref<5x0xf32>
      %z = tandem.permute %x by [1, 0] : !tandem.ref<0x3xf32> -> !tandem.ref<3x0xf32>
      return %y, %z : !tandem.ref<5x0xf32>, !tandem.ref<3x0xf32>
    }})",
      [](Trace &t) {
        Tensor x = t.input("x", {0, 3});
        t.output("y", x.view({5, 0}));
        t.output("z", x.permute({1, 0}));
      }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->shape("y"), (Shape{5, 0}));
  EXPECT_EQ(m->shape("z"), (Shape{3, 0}));
}
