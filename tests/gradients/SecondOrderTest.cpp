//===- SecondOrderTest.cpp - gradients of gradients -----------------------===//
#include "passes/autodiff/Specialize.h"
#include "tests/gradients/GradientCheck.h"
#include "tests/gradients/Memory.h"
#include "tests/support/TestModule.h"

#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;
using reference::Array;

namespace {

std::string pipeline(const std::string &kind) {
  return "tandem-build-joint{order=2},tandem-optimize-joint,"
         "tandem-partition-joint{kind=" +
         kind + "}";
}

class SecondOrder : public testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Kinds, SecondOrder,
                         testing::Values("default", "min-cut"),
                         [](const auto &info) {
                           return std::string(info.param) == "default"
                                      ? "Default"
                                      : "MinCut";
                         });

/// Two layers, a norm, a custom_vjp whose backward writes a state and whose
/// second gradient flows through its own backward, and an input that the
/// forward overwrites.
constexpr const char *kModel = R"(
  module attributes {tandem.phase = "functionalize"} {
    func.func @graph(
        %x: tensor<3x4xf64> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %w: tensor<4x5xf64> {tandem.role = #tandem.role<param "w" {requires_grad}>},
        %g: tensor<5xf64> {tandem.role = #tandem.role<param "g" {requires_grad}>},
        %frozen: tensor<5xf64> {tandem.role = #tandem.role<param "frozen">},
        %s: tensor<3x5xf64> {tandem.role = #tandem.role<state "s">})
        -> (tensor<3x5xf64> {tandem.role = #tandem.role<output "o">},
            tensor<f64> {tandem.role = #tandem.role<output "p">},
            tensor<3x4xf64> {tandem.role = #tandem.role<update of "x" {visible}>}) {
      %0 = tandem.matmul %x, %w : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x5xf64>
      %n = tandem.layer_norm %0, %g, %frozen axis 1 : tensor<3x5xf64>, tensor<5xf64>, tensor<5xf64> -> tensor<3x5xf64>
      %t = tandem.gelu %n : tensor<3x5xf64>
      %c, %in, %out = tandem.custom_vjp "cube" (%t) forward {
      ^bb0(%i: tensor<3x5xf64>):
        %i2 = tandem.mul %i, %i : tensor<3x5xf64>
        %i3 = tandem.mul %i2, %i : tensor<3x5xf64>
        tandem.yield %i3, %i, %i2 : tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>
      } backward {
      ^bb0(%i: tensor<3x5xf64>, %i2: tensor<3x5xf64>, %dy: tensor<3x5xf64>, %old: tensor<3x5xf64>):
        %three = tandem.constant dense<3.0> : tensor<3x5xf64>
        %sq = tandem.mul %i, %i : tensor<3x5xf64>
        %d = tandem.mul %sq, %three : tensor<3x5xf64>
        %dx = tandem.mul %d, %dy : tensor<3x5xf64>
        %new = tandem.add %old, %dy : tensor<3x5xf64>
        tandem.yield %dx, %new : tensor<3x5xf64>, tensor<3x5xf64>
      } {outputs = 1, saved = 2, differentiable = 1, states = [{name = "s", written}]}
        : (tensor<3x5xf64>), () -> tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>
      %o = tandem.tanh %c : tensor<3x5xf64>
      %e = tandem.exp %t : tensor<3x5xf64>
      %p = tandem.reduce_sum %e over [0, 1] : tensor<3x5xf64> -> tensor<f64>
      %u = tandem.mul %x, %x : tensor<3x4xf64>
      return %o, %p, %u : tensor<3x5xf64>, tensor<f64>, tensor<3x4xf64>
    }
  })";

double dot(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

} // namespace

// forward, grad_forward and grad_backward against differences of the joint's
// gradients, for every input, param and cotangent; grad_forward gives what the
// backward gives, its writes too.
TEST_P(SecondOrder, J14_J15_EqualsDifferences) {
  TestModule t(kModel), first(kModel);
  ASSERT_TRUE(t.module) << t.diagnostics;
  ASSERT_TRUE(runPasses(*first.module, "tandem-build-joint"))
      << first.diagnostics;
  ASSERT_TRUE(runPasses(*t.module, pipeline(GetParam()))) << t.diagnostics;
  EXPECT_EQ(t.diagnostics, "");
  func::FuncOp joint = first.function("joint");
  func::FuncOp forward = t.function("grad_forward"),
               backward = t.function("grad_backward");
  ASSERT_TRUE(forward && backward);
  auto role = [&](RoleKind kind, const std::string &name) {
    return RoleAttr::get(&t.context, kind, name);
  };

  Memory memory;
  memory.draw(t.function("forward"));
  memory.run(t.function("forward"));
  memory.draw(forward);
  Memory plain = memory;
  plain.draw(t.function("backward"));
  plain.run(t.function("backward"));
  // x holds its new value by now: nobody may read it.
  memory.at(role(RoleKind::Input, "x")) = Array({3, 4});
  memory.run(forward);
  for (unsigned i = 0; i < t.function("backward").getNumResults(); ++i) {
    RoleAttr given = roleOfResult(t.function("backward"), i);
    ASSERT_TRUE(memory.has(given)) << given.str();
    for (int64_t k = 0; k < memory.at(given).size(); ++k)
      EXPECT_NEAR(memory.at(given)[k], plain.at(given)[k], 1e-12)
          << given.str();
  }
  memory.draw(backward);
  // Nor the cotangents; and the state is what the first backward left.
  for (const char *name : {"o", "p", "update of x"})
    memory.forget(role(RoleKind::Cotangent, name));
  for (double &x :
       memory
           .at(roleOfArgument(forward,
                              *findArgument(forward, RoleKind::State, "s")))
           .data)
    x = 1e6;
  Memory gradients = memory;
  gradients.run(backward);

  // J05: any mask of the second cotangents, as with zeros filled in.
  const char *names[] = {"grad of x", "grad of w", "grad of g"};
  for (unsigned mask = 1; mask < 8; ++mask) {
    Memory got = memory, filled = memory;
    llvm::SmallVector<llvm::StringRef> defined;
    for (unsigned i = 0; i < 3; ++i)
      if (mask >> i & 1)
        defined.push_back(names[i]);
      else
        for (double &x : filled.at(role(RoleKind::Cotangent, names[i])).data)
          x = 0;
    OwningOpRef<func::FuncOp> some = backward.clone();
    specializeCotangents(*some, defined);
    got.run(*some);
    filled.run(backward);
    for (unsigned i = 0; i < some->getNumResults(); ++i) {
      RoleAttr result = roleOfResult(*some, i);
      for (int64_t k = 0; k < got.at(result).size(); ++k)
        EXPECT_NEAR(got.at(result)[k], filled.at(result)[k], 1e-12)
            << mask << " " << result.str();
    }
  }

  // <u, gradients> as a function of the joint's arguments.
  auto along = [&](RoleAttr moved, const Array *direction, double step) {
    Memory at;
    at.draw(joint);
    if (direction)
      for (int64_t k = 0; k < direction->size(); ++k)
        at.at(moved)[k] += step * (*direction)[k];
    at.run(joint);
    double sum = 0;
    for (const char *name : {"x", "w", "g"})
      sum += dot(
          at.at(role(RoleKind::Grad, name)),
          memory.at(role(RoleKind::Cotangent, std::string("grad of ") + name)));
    return sum;
  };
  constexpr double kStep = 1e-5;
  for (RoleAttr moved :
       {role(RoleKind::Input, "x"), role(RoleKind::Param, "w"),
        role(RoleKind::Param, "g"), role(RoleKind::Cotangent, "o"),
        role(RoleKind::Cotangent, "p"),
        role(RoleKind::Cotangent, "update of x")}) {
    bool isCotangent = moved.getKind() == RoleKind::Cotangent;
    RoleAttr grad = role(RoleKind::Grad, (isCotangent ? "cotangent of " : "") +
                                             moved.getName().str());
    // The first gradients have the same roles as the second's.
    ASSERT_TRUE(findResult(backward, RoleKind::Grad, grad.getName()))
        << grad.str();
    Array direction(gradients.at(grad).shape);
    for (int64_t k = 0; k < direction.size(); ++k)
      direction[k] = std::sin(1.0 + static_cast<double>(k));
    double ours = dot(gradients.at(grad), direction);
    double theirs =
        (along(moved, &direction, kStep) - along(moved, &direction, -kStep)) /
        (2 * kStep);
    EXPECT_NEAR(ours, theirs, 1e-5 * (1 + std::abs(theirs))) << moved.str();
  }
}

// The backward keeps cos(x) alone; its gradient needs x, which the forward
// overwrites: the forward saves it for grad_forward.
TEST_P(SecondOrder, J14_WhatOnlyTheSecondNeeds) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize", tandem.loss = "y"} {
      func.func @graph(
          %x: tensor<f64> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "y">},
              tensor<f64> {tandem.role = #tandem.role<output "c">},
              tensor<f64> {tandem.role = #tandem.role<update of "x">}) {
        %y = tandem.sin %x : tensor<f64>
        %c = tandem.cos %x : tensor<f64>
        %n = tandem.pass_grad %x, %c : tensor<f64>
        return %y, %c, %n : tensor<f64>, tensor<f64>, tensor<f64>
      }
    })");
  ASSERT_TRUE(t.module) << t.diagnostics;
  ASSERT_TRUE(runPasses(*t.module, pipeline(GetParam()))) << t.diagnostics;
  EXPECT_FALSE(findArgument(t.function("backward"), RoleKind::Saved, "x"));
  EXPECT_TRUE(findArgument(t.function("grad_forward"), RoleKind::Saved, "x"));
  Memory memory;
  memory.at(RoleKind::Input, &t.context, "x") = array({}, {0.7});
  memory.at(RoleKind::Cotangent, &t.context, "y") = array({}, {2});
  memory.at(RoleKind::Cotangent, &t.context, "grad of x") = array({}, {1});
  memory.run(t.function("forward"));
  memory.at(RoleKind::Input, &t.context, "x") = array({}, {100});
  memory.run(t.function("backward"));
  auto grad = RoleAttr::get(&t.context, RoleKind::Grad, "x");
  EXPECT_NEAR(memory.at(grad)[0], 2 * std::cos(0.7), 1e-15);
  memory.run(t.function("grad_forward"));
  EXPECT_NEAR(memory.at(grad)[0], 2 * std::cos(0.7), 1e-15);
  memory.run(t.function("grad_backward"));
  EXPECT_NEAR(memory.at(grad)[0], -2 * std::sin(0.7), 1e-15);
}

// x^3: 3x^2, 6x, and 6 by gradients inside of the program.
TEST_P(SecondOrder, J14_J16_Cube) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize"} {
      func.func @graph(
          %x: tensor<f64> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "loss">}) {
        %0 = tandem.mul %x, %x : tensor<f64>
        %1 = tandem.mul %0, %x : tensor<f64>
        return %1 : tensor<f64>
      }
    })");
  ASSERT_TRUE(runPasses(*t.module, pipeline(GetParam()))) << t.diagnostics;
  Memory memory;
  auto grad = RoleAttr::get(&t.context, RoleKind::Grad, "x");
  memory.at(RoleKind::Input, &t.context, "x") = array({}, {5});
  memory.at(RoleKind::Cotangent, &t.context, "loss") = array({}, {1});
  memory.at(RoleKind::Cotangent, &t.context, "grad of x") = array({}, {1});
  memory.run(t.function("forward"));
  memory.run(t.function("grad_forward"));
  EXPECT_EQ(memory.at(grad)[0], 75);
  memory.run(t.function("grad_backward"));
  EXPECT_EQ(memory.at(grad)[0], 30);

  TestModule nested(R"(
    module attributes {tandem.phase = "functionalize"} {
      func.func @graph(
          %x: tensor<f64> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "loss">}) {
        %0 = tandem.mul %x, %x : tensor<f64>
        %1 = tandem.mul %0, %x : tensor<f64>
        %2 = tandem.grad %1 wrt (%x) : tensor<f64>, tensor<f64> -> tensor<f64>
        %3 = tandem.grad %2 wrt (%x) : tensor<f64>, tensor<f64> -> tensor<f64>
        return %3 : tensor<f64>
      }
    })");
  ASSERT_TRUE(
      runPasses(*nested.module, "tandem-build-joint,tandem-optimize-joint,"
                                "tandem-partition-joint{kind=" +
                                    std::string(GetParam()) + "}"))
      << nested.diagnostics;
  memory.run(nested.function("forward"));
  EXPECT_EQ(memory.at(RoleKind::Output, &t.context, "loss")[0], 30);
  memory.run(nested.function("backward"));
  EXPECT_EQ(memory.at(grad)[0], 6);
  memory.run(nested.function("evaluate"));
  EXPECT_EQ(memory.at(RoleKind::Output, &t.context, "loss")[0], 30);
}

// Forces inside of the forward, through an intermediate and a custom_vjp whose
// backward disagrees with its forward: e = f(x) * w, its gradient is -w (not
// cos), the loss the square of that: g(w) = 2w.
TEST(GradInside, J16_ForcesThroughACustomBackward) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize"} {
      func.func @graph(
          %x: tensor<f64> {tandem.role = #tandem.role<input "x">},
          %w: tensor<f64> {tandem.role = #tandem.role<param "w" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "loss">}) {
        %i = tandem.add %x, %x : tensor<f64>
        %s = tandem.custom_vjp "f" (%i) forward {
        ^bb0(%a: tensor<f64>):
          %b = tandem.sin %a : tensor<f64>
          tandem.yield %b : tensor<f64>
        } backward {
        ^bb0(%dy: tensor<f64>):
          %n = tandem.neg %dy : tensor<f64>
          tandem.yield %n : tensor<f64>
        } {outputs = 1, saved = 0, differentiable = 1} : (tensor<f64>), () -> tensor<f64>
        %e = tandem.mul %s, %w : tensor<f64>
        %f = tandem.grad %e wrt (%i) : tensor<f64>, tensor<f64> -> tensor<f64>
        %loss = tandem.mul %f, %f : tensor<f64>
        return %loss : tensor<f64>
      }
    })");
  ASSERT_TRUE(runPasses(*t.module, "tandem-build-joint")) << t.diagnostics;
  Memory memory;
  memory.at(RoleKind::Input, &t.context, "x") = array({}, {0.3});
  memory.at(RoleKind::Param, &t.context, "w") = array({}, {7});
  memory.at(RoleKind::Cotangent, &t.context, "loss") = array({}, {1});
  memory.run(t.function("joint"));
  EXPECT_EQ(memory.at(RoleKind::Output, &t.context, "loss")[0], 49);
  EXPECT_EQ(memory.at(RoleKind::Grad, &t.context, "w")[0], 14);
}
