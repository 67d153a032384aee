//===- AliasTest.cpp - outputs that share storage: rows A01 to A06, A13...
//-===//
#include "compiler/trace/CustomVjp.h"
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;

namespace {
class Aliases : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Aliases);

TEST_P(Aliases, A01_OutputIsAViewOfAnInput) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">})
          -> (!tandem.ref<3x2xf32> {tandem.role = #tandem.role<output "t">},
              !tandem.ref<3xf32> {tandem.role = #tandem.role<output "r">}) {
        %t = tandem.permute %x by [1, 0] : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        %f = tandem.reshape %x to [6] : !tandem.ref<2x3xf32> -> !tandem.ref<6xf32>
        %r = tandem.slice %f from [1] to [6] step [2] : !tandem.ref<6xf32> -> !tandem.ref<3xf32>
        return %t, %r : !tandem.ref<3x2xf32>, !tandem.ref<3xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 3});
                  t.output("t", x.permute({1, 0}));
                  t.output("r", x.view({6}).slice(0, 1, 6, 2));
                }};
  std::string text = printed(source, "functionalize");
  EXPECT_EQ(count(text, "alias = {of = \"x\""), 2) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("t", "x"));
  EXPECT_TRUE(m->share("r", "x"));
  EXPECT_EQ(m->strides("t"), (Shape{1, 3}));
  EXPECT_EQ(m->strides("r"), (Shape{2}));
  EXPECT_NUMBERS(m->output("t"), {0, 3, 1, 4, 2, 5});
  EXPECT_NUMBERS(m->output("r"), {1, 3, 5});
}

//===----------------------------------------------------------------------===//
// A02: views of an intermediate
//===----------------------------------------------------------------------===//

TEST_P(Aliases, A02_IntermediateAndItsView) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%v: tensor<4xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
          -> (!tandem.ref<4xf32> {tandem.role = #tandem.role<output "b">},
              !tandem.ref<2x2xf32> {tandem.role = #tandem.role<output "r">}) {
        %0 = tandem.mul %v, %v : tensor<4xf32>
        %b = tandem.make_ref %0 : tensor<4xf32>
        %r = tandem.reshape %b to [2, 2] : !tandem.ref<4xf32> -> !tandem.ref<2x2xf32>
        return %b, %r : !tandem.ref<4xf32>, !tandem.ref<2x2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor v =
                      t.input("v", {4}, DType::F32, {.requiresGrad = true});
                  Tensor b = v * v;
                  t.output("b", b);
                  t.output("r", b.view({2, 2}));
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("v", {1, 2, 3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("b", "r"));
  EXPECT_EQ(m->shape("r"), (Shape{2, 2}));
  EXPECT_NUMBERS(m->output("b"), {1, 4, 9, 16});
  EXPECT_NUMBERS(m->output("r"), {1, 4, 9, 16});
  ASSERT_EQ(m->backward({{"b", {1, 0, 1, 0}}, {"r", {10, 10, 0, 0}}}), "");
  EXPECT_NUMBERS(m->gradient("v"), {22, 40, 6, 0});
}

TEST_P(Aliases, A02_OneViewAlone) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%v: tensor<4xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
          -> (!tandem.ref<2x2xf32> {tandem.role = #tandem.role<output "r">}) {
        %0 = tandem.mul %v, %v : tensor<4xf32>
        %b = tandem.make_ref %0 : tensor<4xf32>
        %r = tandem.reshape %b to [2, 2] : !tandem.ref<4xf32> -> !tandem.ref<2x2xf32>
        return %r : !tandem.ref<2x2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor v =
                      t.input("v", {4}, DType::F32, {.requiresGrad = true});
                  t.output("r", (v * v).view({2, 2}));
                }};
  std::string text = printed(source, "partition");
  std::string forward = text.substr(text.find("@forward"));
  forward = forward.substr(0, forward.find('{' + std::string("\n")));
  EXPECT_EQ(count(forward, "role<output"), 1) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("v", {1, 2, 3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->outputs.size(), 1U);
  EXPECT_NUMBERS(m->output("r"), {1, 4, 9, 16});
  ASSERT_EQ(m->backward({{"r", {1, 1, 1, 2}}}), "");
  EXPECT_NUMBERS(m->gradient("v"), {2, 4, 6, 16});
}

TEST_P(Aliases, A02_ReturnedTwice) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%v: tensor<2xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
          -> (!tandem.ref<2xf32> {tandem.role = #tandem.role<output "a">},
              !tandem.ref<2xf32> {tandem.role = #tandem.role<output "b">}) {
        %0 = tandem.mul %v, %v : tensor<2xf32>
        %b = tandem.make_ref %0 : tensor<2xf32>
        return %b, %b : !tandem.ref<2xf32>, !tandem.ref<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor v =
                      t.input("v", {2}, DType::F32, {.requiresGrad = true});
                  Tensor b = v * v;
                  t.output("a", b);
                  t.output("b", b);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("v", {3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("a", "b"));
  EXPECT_NUMBERS(m->output("a"), {9, 16});
  EXPECT_NUMBERS(m->output("b"), {9, 16});
  ASSERT_EQ(m->backward({{"a", {1, 1}}, {"b", {0, 2}}}), "");
  EXPECT_NUMBERS(m->gradient("v"), {6, 24});
}

//===----------------------------------------------------------------------===//
// A03, A04
//===----------------------------------------------------------------------===//

TEST_P(Aliases, A03_DetachedOutput) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%v: tensor<2xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
          -> (!tandem.ref<2xf32> {tandem.role = #tandem.role<output "y">},
              !tandem.ref<2xf32> {tandem.role = #tandem.role<output "d">}) {
        %0 = tandem.mul %v, %v : tensor<2xf32>
        %y = tandem.make_ref %0 : tensor<2xf32>
        %d = tandem.detach %y : !tandem.ref<2xf32>
        return %y, %d : !tandem.ref<2xf32>, !tandem.ref<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor v =
                      t.input("v", {2}, DType::F32, {.requiresGrad = true});
                  Tensor y = v * v;
                  t.output("y", y);
                  t.output("d", y.detach());
                }};
  EXPECT_FALSE(contains(printed(source, "joint"), "cotangent of \"d\""));
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("v", {3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("y", "d"));
  EXPECT_NUMBERS(m->output("d"), {9, 16});
  ASSERT_EQ(m->backward({{"y", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("v"), {6, 8});
  if (auto *code = dynamic_cast<CompiledMachine *>(m.get())) {
    EXPECT_TRUE(code->outputTensors["y"].requiresGrad());
    EXPECT_FALSE(code->outputTensors["d"].requiresGrad());
  }
}

TEST_P(Aliases, A03_ViewMadeInNoGrad) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%v: tensor<4xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
          -> (!tandem.ref<4xf32> {tandem.role = #tandem.role<output "y">},
              !tandem.ref<2xf32> {tandem.role = #tandem.role<output "s">}) {
        %0 = tandem.mul %v, %v : tensor<4xf32>
        %y = tandem.make_ref %0 : tensor<4xf32>
        %s = tandem.slice %y from [0] to [4] step [2] {tandem.no_grad} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
        return %y, %s : !tandem.ref<4xf32>, !tandem.ref<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor v =
                      t.input("v", {4}, DType::F32, {.requiresGrad = true});
                  Tensor y = v * v;
                  t.output("y", y);
                  NoGradScope scope = t.noGrad();
                  t.output("s", y.slice(0, 0, 4, 2));
                }};
  EXPECT_FALSE(contains(printed(source, "joint"), "cotangent of \"s\""));
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("v", {1, 2, 3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("y", "s"));
  EXPECT_NUMBERS(m->output("s"), {1, 9});
  ASSERT_EQ(m->backward({{"y", {1, 1, 1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("v"), {2, 4, 6, 8});
}

TEST_P(Aliases, A04_TransposedIntermediate) {
  Source source{
      R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%v: tensor<2x3xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
          -> (!tandem.ref<3x2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.mul %v, %v : tensor<2x3xf32>
        %b = tandem.make_ref %0 : tensor<2x3xf32>
        %o = tandem.transpose_ %b dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        return %o : !tandem.ref<3x2xf32>
      }
    })",
      [](Trace &t) {
        Tensor v = t.input("v", {2, 3}, DType::F32, {.requiresGrad = true});
        Tensor b = v * v;
        b.transpose_(0, 1);
        t.output("o", b);
      }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("v", {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->shape("o"), (Shape{3, 2}));
  EXPECT_NUMBERS(m->output("o"), {0, 9, 1, 16, 4, 25});
  ASSERT_EQ(m->backward({{"o", {1, 2, 3, 4, 5, 6}}}), "");
  EXPECT_NUMBERS(m->gradient("v"), {0, 6, 20, 12, 32, 60});
}

//===----------------------------------------------------------------------===//
// A06, A13
//===----------------------------------------------------------------------===//

TEST_P(Aliases, A06_OneTensorForTwoInputs) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                       %y: tensor<2xf32> {tandem.role = #tandem.role<input "y" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.mul %x, %y : tensor<2xf32>
        %o = tandem.mul %0, %y : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  InputOptions grad{.requiresGrad = true};
                  Tensor x = t.input("x", {2}, DType::F32, grad),
                         y = t.input("y", {2}, DType::F32, grad);
                  t.output("o", x * y * y);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {2, 3});
  m->set("y", {2, 3});
  if (auto *code = dynamic_cast<CompiledMachine *>(m.get()))
    code->tensors["y"] = code->tensors["x"];
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {8, 27});
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  // The leaf's gradient, 3 x^2, in its two parts.
  EXPECT_NUMBERS(m->gradient("x"), {4, 9});
  EXPECT_NUMBERS(m->gradient("y"), {8, 18});
}

TEST_P(Aliases, A13_ViewOfAWrittenInput) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (!tandem.ref<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.slice %x from [1] to [3] step [1] : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
        %0 = tandem.read %x : !tandem.ref<4xf32>
        %1 = tandem.mul %0, %0 : tensor<4xf32>
        tandem.write %1 into %x : tensor<4xf32>, !tandem.ref<4xf32>
        return %o : !tandem.ref<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {4}, DType::F32, {.requiresGrad = true});
                  Tensor o = x.slice(0, 1, 3);
                  x.mul_(x);
                  t.output("o", o);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("o", "x"));
  EXPECT_NUMBERS(m->output("o"), {4, 9});
  EXPECT_NUMBERS(m->contents("x"), {1, 4, 9, 16});
  ASSERT_EQ(m->backward({{"o", {1, 10}}, {"update of x", {1, 0, 0, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {2, 4, 60, 8});
}

//===----------------------------------------------------------------------===//
// A14, A15, A16
//===----------------------------------------------------------------------===//

TEST_P(Aliases, A14_CustomVjpReturnsItsArgument) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.custom_vjp "triple" (%x) forward {
          ^bb0(%a: tensor<2xf32>):
            tandem.yield %a : tensor<2xf32>
        } backward {
          ^bb0(%d: tensor<2xf32>):
            %three = tandem.constant dense<3.0> : tensor<2xf32>
            %0 = tandem.mul %d, %three : tensor<2xf32>
            tandem.yield %0 : tensor<2xf32>
        } : (tensor<2xf32>), () -> tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32, {.requiresGrad = true});
                  Tensors o = customVjp(
                      "triple", {x}, {},
                      [](const Tensors &in, const Tensors &, Saver &) {
                        return Tensors{in[0]};
                      },
                      [](const Tensors &, const Tensors &d, const Tensors &) {
                        return Tensors{d[0] * 3.0};
                      });
                  t.output("o", o[0]);
                }};
  EXPECT_FALSE(contains(printed(source, "functionalize"), "alias ="));
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {1, 2});
  if (auto *code = dynamic_cast<CompiledMachine *>(m.get())) {
    EXPECT_NE(code->outputTensors["o"].storage(), code->tensors["x"].storage());
  }
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {3, 30});
}

TEST_P(Aliases, A15_UndeclaredEffect) {
  // In text the list is missing; in a traced program the op reaches outside.
  Source source{
      R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x">},
                       %s: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "s">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.custom_vjp "sneaky" (%x) refs(%s) forward {
          ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
            tandem.write %a into %r : tensor<2xf32>, !tandem.ref<2xf32>
            tandem.yield %a : tensor<2xf32>
        } backward {
          ^bb0(%d: tensor<2xf32>, %r: !tandem.ref<2xf32>):
            tandem.yield %d : tensor<2xf32>
        } : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
      [](Trace &t) {
        Tensor x = t.input("x", {2});
        Tensor s = t.state("s", {2}, Init::constant(0));
        t.output("o", customVjp(
                          "sneaky", {x}, {},
                          [=](const Tensors &in, const Tensors &, Saver &) {
                            s.copy_(in[0]);
                            return Tensors{in[0]};
                          },
                          [](const Tensors &, const Tensors &d,
                             const Tensors &) { return Tensors{d[0]}; })[0]);
      }};
  std::string error = errorOf(source);
  EXPECT_PART(error, "capture\n");
  EXPECT_PART(error, "sneaky");
  EXPECT_PART(error, isTraced() ? "AliasTest.cpp:" : "row.mlir:6:");
}

TEST_P(Aliases, A15_UndeclaredAlias) {
  // A region that uses storage of the program outside, not handed to it.
  Source source{
      R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x">},
                       %s: !tandem.ref<2xf32> {tandem.role = #tandem.role<state "s">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.custom_vjp "sneaky" (%x) forward {
          ^bb0(%a: tensor<2xf32>):
            %0 = tandem.read %s : !tandem.ref<2xf32>
            tandem.yield %0 : tensor<2xf32>
        } backward {
          ^bb0(%d: tensor<2xf32>):
            tandem.yield %d : tensor<2xf32>
        } : (tensor<2xf32>), () -> tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
      [](Trace &t) {
        Tensor x = t.input("x", {2});
        Tensor s = t.state("s", {2}, Init::constant(0));
        t.output("o", customVjp(
                          "sneaky", {x}, {},
                          [=](const Tensors &, const Tensors &, Saver &) {
                            return Tensors{s};
                          },
                          [](const Tensors &, const Tensors &d,
                             const Tensors &) { return Tensors{d[0]}; })[0]);
      }};
  std::string error = errorOf(source);
  EXPECT_PART(error, "capture\n");
  EXPECT_PART(error, isTraced() ? "AliasTest.cpp:" : "row.mlir:8:");
}

TEST_P(Aliases, A16_OverlappingAsStrided) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<3x2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.as_strided %x sizes [3, 2] strides [1, 1] offset 0 : tensor<4xf32> -> tensor<3x2xf32>
        %o = tandem.mul %0, %0 : tensor<3x2xf32>
        return %o : tensor<3x2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {4}, DType::F32, {.requiresGrad = true});
                  Tensor y = x.asStrided({3, 2}, {1, 1});
                  t.output("o", y * y);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3, 4});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {1, 4, 4, 9, 9, 16});
  ASSERT_EQ(m->backward({{"o", {1, 10, 100, 1000, 1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {2, 440, 6006, 8});
}
