//===- UndefinedTest.cpp - cotangents that are left out -------------------===//
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

/// Four outputs over shared values, one of them of an op with two results; a
/// state that the backward writes.
constexpr const char *kGraph = R"(
    func.func @graph(
        %x: tensor<4xf64> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %w: tensor<4xf64> {tandem.role = #tandem.role<param "w" {requires_grad}>},
        %v: tensor<4xf64> {tandem.role = #tandem.role<param "v" {requires_grad}>},
        %s: tensor<4xf64> {tandem.role = #tandem.role<state "s">})
        -> (tensor<4xf64> {tandem.role = #tandem.role<output "a">},
            tensor<4xf64> {tandem.role = #tandem.role<output "b">},
            tensor<4xf64> {tandem.role = #tandem.role<output "c">},
            tensor<4xf64> {tandem.role = #tandem.role<output "d">},
            tensor<4xf64> {tandem.role = #tandem.role<output "e">}) {
      %h = tandem.sin %x : tensor<4xf64>
      %a = tandem.mul %h, %w : tensor<4xf64>
      %eh = tandem.exp %h : tensor<4xf64>
      %b = tandem.mul %eh, %v : tensor<4xf64>
      %p, %q, %save = tandem.custom_vjp "two" (%h) forward {
      ^bb0(%i: tensor<4xf64>):
        %i2 = tandem.mul %i, %i : tensor<4xf64>
        %i3 = tandem.mul %i2, %i : tensor<4xf64>
        tandem.yield %i2, %i3, %i : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
      } backward {
      ^bb0(%i: tensor<4xf64>, %dp: tensor<4xf64>, %dq: tensor<4xf64>, %old: tensor<4xf64>):
        %0 = tandem.add %i, %i : tensor<4xf64>
        %1 = tandem.mul %0, %dp : tensor<4xf64>
        %2 = tandem.mul %i, %i : tensor<4xf64>
        %3 = tandem.constant dense<3.0> : tensor<4xf64>
        %4 = tandem.mul %2, %3 : tensor<4xf64>
        %5 = tandem.mul %4, %dq : tensor<4xf64>
        %6 = tandem.add %1, %5 : tensor<4xf64>
        %7 = tandem.add %old, %6 : tensor<4xf64>
        tandem.yield %6, %7 : tensor<4xf64>, tensor<4xf64>
      } {outputs = 2, saved = 1, differentiable = 1, states = [{name = "s", written}]}
        : (tensor<4xf64>), () -> tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
      %c = tandem.add %p, %a : tensor<4xf64>
      return %a, %b, %c, %q, %h : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
    })";

const char *kToPartition =
    "tandem-build-joint,tandem-optimize-joint,tandem-partition-joint";

std::string moduleText(const std::string &attributes = "") {
  return "module attributes {tandem.phase = \"functionalize\"" + attributes +
         "} {" + kGraph + "}";
}

/// Which outputs each value's gradient flows from.
const std::map<std::string, std::string> kReach = {
    {"x", "abcde"}, {"w", "ac"}, {"v", "b"}};

} // namespace

// The gradients of every mask are those with zeros filled in, and the sums of
// those of each output alone; a gradient that no defined cotangent reaches is
// undefined; the state is written if one reaches its op.
TEST(Undefined, J04_J05_B17_AllMasks) {
  const std::string outputs = "abcde";
  TestModule t(moduleText());
  ASSERT_TRUE(t.module) << t.diagnostics;
  ASSERT_TRUE(runPasses(*t.module, kToPartition)) << t.diagnostics;
  EXPECT_NE(t.print().find("tandem.accumulate"), std::string::npos);
  EXPECT_NE(t.print().find("tandem.or_zero"), std::string::npos);
  EXPECT_NE(t.print().find("tandem.if_defined"), std::string::npos);
  Memory given;
  given.draw(t.function("forward"));
  given.run(t.function("forward"));
  given.draw(t.function("backward"));

  // Each output alone, from a module that differentiates no other.
  std::map<std::string, Array> alone;
  for (char output : outputs) {
    std::string name(1, output);
    TestModule one(moduleText(", tandem.loss = \"" + name + "\""));
    ASSERT_TRUE(runPasses(*one.module, "tandem-build-joint"))
        << one.diagnostics;
    EXPECT_EQ(one.print().find("tandem.accumulate"), std::string::npos);
    EXPECT_EQ(one.print().find("tandem.or_zero"), std::string::npos);
    EXPECT_EQ(one.print().find("tandem.if_defined"), std::string::npos);
    Memory memory;
    memory.draw(one.function("joint"));
    memory.run(one.function("joint"));
    for (const auto &[value, reach] : kReach)
      if (reach.find(output) != std::string::npos)
        alone[name + value] = memory.at(RoleKind::Grad, &one.context, value);
  }

  for (unsigned mask = 1; mask < 32; ++mask) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < 5; ++i)
      if (mask >> i & 1)
        names.emplace_back(1, outputs[i]);
    llvm::SmallVector<llvm::StringRef> defined(names.begin(), names.end());
    OwningOpRef<func::FuncOp> some = t.function("backward").clone(),
                              all = t.function("backward").clone();
    specializeCotangents(*some, defined);
    specializeCotangents(*all);
    ASSERT_TRUE(succeeded(verify(*some)));
    for (unsigned i = 0; i < some->getNumArguments(); ++i)
      if (RoleAttr role = roleOfArgument(*some, i);
          role.getKind() == RoleKind::Cotangent)
        EXPECT_TRUE(llvm::is_contained(defined, role.getName().getValue()));
    Memory got = given, filled = given;
    for (char output : outputs)
      if (!llvm::is_contained(names, std::string(1, output)))
        for (double &x :
             filled.at(RoleKind::Cotangent, &t.context, std::string(1, output))
                 .data)
          x = 0;
    got.run(*some);
    filled.run(*all);
    for (const auto &[value, reach] : kReach) {
      RoleAttr role = RoleAttr::get(&t.context, RoleKind::Grad, value);
      bool reached = llvm::any_of(names, [&, &r = reach](const auto &name) {
        return r.find(name) != std::string::npos;
      });
      EXPECT_EQ(got.has(role), reached) << mask << " " << value;
      Array sum({4});
      for (const std::string &name : names)
        if (auto it = alone.find(name + value); it != alone.end())
          for (int64_t k = 0; k < 4; ++k)
            sum[k] += it->second[k];
      for (int64_t k = 0; k < 4; ++k) {
        EXPECT_NEAR(filled.at(role)[k], sum[k], 1e-12) << mask << " " << value;
        if (reached) {
          EXPECT_EQ(got.at(role)[k], filled.at(role)[k])
              << mask << " " << value;
        }
      }
    }
    RoleAttr update = roleOfResult(*all, all->getNumResults() - 1);
    ASSERT_EQ(update.str(), "update of \"s\"");
    bool runs =
        llvm::is_contained(names, "c") || llvm::is_contained(names, "d");
    EXPECT_EQ(got.at(update).data,
              runs ? filled.at(update).data
                   : given.at(RoleKind::State, &t.context, "s").data)
        << mask;
  }
}

// An op that asks for undefined cotangents: what depends on one that is not
// there is left out, of its gradient and of what it writes.
TEST(Undefined, J12_B17_OpsThatAsk) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize"} {
      func.func @graph(
          %x: tensor<f64> {tandem.role = #tandem.role<input "x" {requires_grad}>},
          %s: tensor<f64> {tandem.role = #tandem.role<state "s">},
          %r: tensor<f64> {tandem.role = #tandem.role<state "r">})
          -> (tensor<f64> {tandem.role = #tandem.role<output "p">},
              tensor<f64> {tandem.role = #tandem.role<output "q">}) {
        %p, %q = tandem.custom_vjp "two" (%x) forward {
        ^bb0(%a: tensor<f64>):
          tandem.yield %a, %a : tensor<f64>, tensor<f64>
        } backward {
        ^bb0(%dp: tensor<f64>, %dq: tensor<f64>, %s2: tensor<f64>, %r2: tensor<f64>):
          %0 = tandem.accumulate %dp, %dq : tensor<f64>
          %1 = tandem.add %s2, %dp : tensor<f64>
          %2 = tandem.add %r2, %0 : tensor<f64>
          tandem.yield %0, %1, %2 : tensor<f64>, tensor<f64>, tensor<f64>
        } {undefined_cotangents, outputs = 2, saved = 0, differentiable = 1,
           states = [{name = "s", written}, {name = "r", written}]}
          : (tensor<f64>), () -> tensor<f64>, tensor<f64>
        return %p, %q : tensor<f64>, tensor<f64>
      }
    })");
  ASSERT_TRUE(t.module) << t.diagnostics;
  ASSERT_TRUE(runPasses(*t.module, kToPartition)) << t.diagnostics;
  struct Case {
    std::vector<llvm::StringRef> defined;
    double gradient, s, r;
  };
  for (const Case &one : {Case{{"p"}, 3, 103, 203}, Case{{"q"}, 5, 100, 205},
                          Case{{"p", "q"}, 8, 103, 208}}) {
    OwningOpRef<func::FuncOp> backward = t.function("backward").clone();
    specializeCotangents(*backward, one.defined);
    Memory memory;
    memory.at(RoleKind::Cotangent, &t.context, "p") = array({}, {3});
    memory.at(RoleKind::Cotangent, &t.context, "q") = array({}, {5});
    memory.at(RoleKind::State, &t.context, "s") = array({}, {100});
    memory.at(RoleKind::State, &t.context, "r") = array({}, {200});
    memory.draw(*backward);
    memory.run(*backward);
    std::map<std::string, double> got;
    for (unsigned i = 0; i < backward->getNumResults(); ++i) {
      RoleAttr role = roleOfResult(*backward, i);
      got[role.str()] = memory.at(role)[0];
    }
    EXPECT_EQ(got,
              (std::map<std::string, double>{{"grad of \"x\"", one.gradient},
                                             {"update of \"s\"", one.s},
                                             {"update of \"r\"", one.r}}))
        << one.defined.front().str();
  }
}

// The step differentiates the loss alone: what only other cotangents feed is
// not computed, and a param that then has no gradient keeps its value and its
// optimizer state.
TEST(Undefined, J03_StepLeavesParamsWithoutGradientAlone) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize", tandem.optimizer = "momentum:lr=0.5"} {
      func.func @graph(
          %x: tensor<f64> {tandem.role = #tandem.role<input "x">},
          %w: tensor<f64> {tandem.role = #tandem.role<param "w" {requires_grad}>},
          %v: tensor<f64> {tandem.role = #tandem.role<param "v" {requires_grad}>},
          %u: tensor<f64> {tandem.role = #tandem.role<param "u" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "loss">},
              tensor<f64> {tandem.role = #tandem.role<update of "x" {visible}>}) {
        %loss = tandem.mul %w, %w : tensor<f64>
        %new = tandem.mul %x, %v : tensor<f64>
        return %loss, %new : tensor<f64>, tensor<f64>
      }
    })");
  ASSERT_TRUE(runPasses(*t.module, kToPartition)) << t.diagnostics;
  EXPECT_EQ(t.diagnostics,
            "'param \"u\"' requires grad, but no output that has a gradient "
            "depends on it; it gets none\n");
  func::FuncOp backward = t.function("backward"), step = t.function("step");
  EXPECT_TRUE(findResult(backward, RoleKind::Grad, "v"));
  EXPECT_FALSE(findResult(backward, RoleKind::Grad, "u"));
  for (const char *name : {"v", "u"}) {
    EXPECT_FALSE(findResult(step, RoleKind::Update, name)) << name;
    EXPECT_FALSE(findResult(step, RoleKind::Update,
                            std::string("momentum.velocity:") + name))
        << name;
  }
  Memory memory;
  memory.draw(step);
  memory.at(RoleKind::Param, &t.context, "w")[0] = 3;
  memory.at(RoleKind::State, &t.context, "momentum.lr")[0] = 0.5;
  memory.at(RoleKind::State, &t.context, "momentum.velocity:w")[0] = 0;
  memory.run(step);
  EXPECT_EQ(memory.at(RoleKind::Update, &t.context, "w")[0], 3 - 0.5 * 6);
  EXPECT_TRUE(memory.has(RoleAttr::get(&t.context, RoleKind::Update, "x")));
}
