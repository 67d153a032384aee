//===- OverlapTest.cpp - inputs that share storage: rows A07 to A12 -------===//
#include "tests/semantics/CallPrograms.h"

using namespace tandem;
using namespace tandem::test;

namespace {
class Overlaps : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Overlaps);

TEST_P(Overlaps, A07_DeclaredAliasOfAWrittenInput) {
  auto m = start(calls::declaredAliasOfAWrittenInput());
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->setView("y", "x", {2}, {1}, 0);
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {4, 16});
  EXPECT_NUMBERS(m->contents("x"), {2, 4});
  EXPECT_NUMBERS(m->contents("y"), {2, 4});
}

TEST_P(Overlaps, A08_DeclaredOverlap) {
  // The two orders of the arguments, and each of them written.
  const std::string x =
      R"(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "s", type = tensor<5xf32>,
           views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 3>, strides = array<i64: 1>}]}}>})";
  const std::string y =
      R"(%y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "s", type = tensor<5xf32>,
           views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 5>, strides = array<i64: 1>}]}}>})";
  for (bool xFirst : {true, false})
    for (bool writesX : {true, false}) {
      SCOPED_TRACE(std::string(xFirst ? "x, y; " : "y, x; ") +
                   (writesX ? "x" : "y") + " is written");
      std::string text = "module attributes {tandem.phase = \"capture\"} {\n"
                         "func.func @graph(" +
                         (xFirst ? x + ", " + y : y + ", " + x) + R"(,
                       %v: tensor<3xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
        tandem.write %v into )" +
                         (writesX ? "%x" : "%y") +
                         R"( : tensor<3xf32>, !tandem.ref<3xf32>
        %0 = tandem.read )" +
                         (writesX ? "%y" : "%x") + R"( : !tandem.ref<3xf32>
        %o = tandem.add %0, %0 : tensor<3xf32>
        return %o : tensor<3xf32>
      }
    })";
      Source source{text.c_str(), [=](Trace &t) {
                      StorageOf s{"s", {5}};
                      auto part = [&](const char *name, int64_t from) {
                        return t.alias(name, s, [=](const Tensor &base) {
                          return base.slice(0, from, from + 3);
                        });
                      };
                      Tensor a = xFirst ? part("x", 0) : part("y", 2),
                             b = xFirst ? part("y", 2) : part("x", 0);
                      Tensor v = t.input("v", {3});
                      Tensor x = xFirst ? a : b, y = xFirst ? b : a;
                      (writesX ? x : y).copy_(v);
                      Tensor other = writesX ? y : x;
                      t.output("o", other + other);
                    }};
      auto m = start(source);
      ASSERT_TRUE(m);
      m->setStorage("s", {0, 1, 2, 3, 4});
      m->setView("x", "s", {3}, {1}, 0);
      m->setView("y", "s", {3}, {1}, 2);
      m->set("v", {10, 20, 30});
      ASSERT_EQ(m->forward(), "");
      if (writesX) {
        EXPECT_NUMBERS(m->output("o"), {60, 6, 8});
        EXPECT_NUMBERS(m->contents("s"), {10, 20, 30, 3, 4});
        EXPECT_NUMBERS(m->contents("y"), {30, 3, 4});
      } else {
        EXPECT_NUMBERS(m->output("o"), {0, 2, 20});
        EXPECT_NUMBERS(m->contents("s"), {0, 1, 10, 20, 30});
        EXPECT_NUMBERS(m->contents("x"), {0, 1, 10});
      }
    }
}

TEST_P(Overlaps, A08_TheirBaseIsAnArgument) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {alias = {of = "b",
                         views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
                       %b: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "b">},
                       %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "b",
                         views = [{op = "slice", starts = array<i64: 1>, limits = array<i64: 4>, strides = array<i64: 1>}]}}>},
                       %v: tensor<2xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
        tandem.write %v into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %0 = tandem.read %y : !tandem.ref<3xf32>
        %o = tandem.add %0, %0 : tensor<3xf32>
        return %o : tensor<3xf32>
      }
    })",
                [](Trace &t) {
                  t.input("b", {4});
                  Tensor x = t.alias("x", "b", [](const Tensor &base) {
                    return base.slice(0, 0, 2);
                  });
                  Tensor y = t.alias("y", "b", [](const Tensor &base) {
                    return base.slice(0, 1, 4);
                  });
                  x.copy_(t.input("v", {2}));
                  t.output("o", y + y);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("b", {0, 1, 2, 3});
  m->setView("x", "b", {2}, {1}, 0);
  m->setView("y", "b", {3}, {1}, 1);
  m->set("v", {10, 20});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {40, 4, 6});
  EXPECT_NUMBERS(m->contents("b"), {10, 20, 2, 3});
  EXPECT_NUMBERS(m->contents("x"), {10, 20});
  EXPECT_NUMBERS(m->contents("y"), {20, 2, 3});
}

TEST_P(Overlaps, A09_DisjointViews) {
  // Halves a, b and columns c, d of one storage each, declared; a and c are
  // written.
  Source source{
      R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%a: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "a" {alias = {of = "s", type = tensor<4xf32>,
                         views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>}]}}>},
                       %b: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "b" {alias = {of = "s", type = tensor<4xf32>,
                         views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 1>}]}}>},
                       %c: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "c" {alias = {of = "t", type = tensor<4xf32>,
                         views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 2>}]}}>},
                       %d: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "d" {alias = {of = "t", type = tensor<4xf32>,
                         views = [{op = "slice", starts = array<i64: 1>, limits = array<i64: 4>, strides = array<i64: 2>}]}}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %b : !tandem.ref<2xf32>
        %1 = tandem.read %d : !tandem.ref<2xf32>
        tandem.write %0 into %a : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.write %1 into %c : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %b : !tandem.ref<2xf32>
        %3 = tandem.read %d : !tandem.ref<2xf32>
        %o = tandem.mul %2, %3 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
      [](Trace &t) {
        auto part = [&](const char *name, const char *of, int64_t from,
                        int64_t to, int64_t step) {
          return t.alias(name, StorageOf{of, {4}}, [=](const Tensor &base) {
            return base.slice(0, from, to, step);
          });
        };
        Tensor a = part("a", "s", 0, 2, 1), b = part("b", "s", 2, 4, 1),
               c = part("c", "t", 0, 4, 2), d = part("d", "t", 1, 4, 2);
        a.copy_(b);
        c.copy_(d);
        t.output("o", b * d);
      }};
  // Nothing of b and d is written, merged or copied.
  std::string text = printed(source, "optimize");
  EXPECT_FALSE(contains(text, "update of \"b\"")) << text;
  EXPECT_FALSE(contains(text, "update of \"d\"")) << text;
  EXPECT_FALSE(contains(text, "tandem.pad")) << text;
  EXPECT_FALSE(contains(text, "tandem.select")) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->setStorage("s", {0, 1, 2, 3});
  m->setStorage("t", {4, 5, 6, 7});
  m->setView("a", "s", {2}, {1}, 0);
  m->setView("b", "s", {2}, {1}, 2);
  m->setView("c", "t", {2}, {2}, 0);
  m->setView("d", "t", {2}, {2}, 1);
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {10, 21});
  EXPECT_NUMBERS(m->contents("s"), {2, 3, 2, 3});
  EXPECT_NUMBERS(m->contents("t"), {5, 5, 7, 7});
}

TEST_P(Overlaps, A11_EveryElementGetsItsGradientOnce) {
  Source source{
      R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x" {requires_grad, alias = {of = "s", type = tensor<5xf32>,
                         views = [{op = "slice", starts = array<i64: 0>, limits = array<i64: 3>, strides = array<i64: 1>}]}}>},
                       %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y" {requires_grad, alias = {of = "s", type = tensor<5xf32>,
                         views = [{op = "slice", starts = array<i64: 2>, limits = array<i64: 5>, strides = array<i64: 1>}]}}>})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">},
              tensor<3xf32> {tandem.role = #tandem.role<output "p">}) {
        %0 = tandem.read %y : !tandem.ref<3xf32>
        %1 = tandem.add %0, %0 : tensor<3xf32>
        tandem.write %1 into %y : tensor<3xf32>, !tandem.ref<3xf32>
        %2 = tandem.read %x : !tandem.ref<3xf32>
        %o = tandem.mul %2, %2 : tensor<3xf32>
        %3 = tandem.read %y : !tandem.ref<3xf32>
        %p = tandem.add %3, %3 : tensor<3xf32>
        return %o, %p : tensor<3xf32>, tensor<3xf32>
      }
    })",
      [](Trace &t) {
        StorageOf s{"s", {5}};
        InputOptions grad{.requiresGrad = true};
        Tensor x = t.alias(
            "x", s, [](const Tensor &base) { return base.slice(0, 0, 3); },
            grad);
        Tensor y = t.alias(
            "y", s, [](const Tensor &base) { return base.slice(0, 2, 5); },
            grad);
        y.add_(y);
        t.output("o", x * x);
        t.output("p", y + y);
      }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->setStorage("s", {1, 2, 3, 4, 5});
  m->setView("x", "s", {3}, {1}, 0);
  m->setView("y", "s", {3}, {1}, 2);
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {1, 4, 36});
  EXPECT_NUMBERS(m->output("p"), {12, 16, 20});
  EXPECT_NUMBERS(m->contents("s"), {1, 2, 6, 8, 10});
  NamedNumbers ones = {{"o", {1, 1, 1}}, {"p", {1, 1, 1}}};
  std::string joint = printed(source, "joint");
  for (const char *name : {"update of x", "update of y"})
    if (contains(joint, "cotangent of \"" + std::string(name)))
      ones[name] = {0, 0, 0};
  ASSERT_EQ(m->backward(ones), "");
  // Element 2 is x's last and y's first; y is what was written there.
  EXPECT_NUMBERS(m->gradient("x"), {2, 4, 0});
  EXPECT_NUMBERS(m->gradient("y"), {28, 4, 4});
}

TEST_P(Overlaps, A12_AliasesOfTwoElementTypes) {
  const std::string text = R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" GRAD>},
                       %y: !tandem.ref<2xi32> {tandem.role = #tandem.role<input "y" {alias = {of = "x", views = [{op = "bitcast", type = i32}]}}>},
                       %v: tensor<2xi32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        tandem.write %v into %y : tensor<2xi32>, !tandem.ref<2xi32>
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.mul %0, %0 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })";
  auto with = [&](bool requiresGrad, std::string &own) {
    own = text;
    own.replace(own.find("GRAD"), 4, requiresGrad ? "{requires_grad}" : "");
    return Source{own.c_str(), [=](Trace &t) {
                    Tensor x = t.input("x", {2}, DType::F32,
                                       {.requiresGrad = requiresGrad});
                    Tensor y = t.alias("y", "x", [](const Tensor &base) {
                      return base.bitcast(DType::I32);
                    });
                    y.copy_(t.input("v", {2}, DType::I32));
                    t.output("o", x * x);
                  }};
  };
  std::string own;
  std::string error = errorOf(with(true, own));
  EXPECT_PART(error, "phase 'functionalize'");
  EXPECT_PART(error, "'tandem.write' op");
  EXPECT_PART(error, "input \"x\"");
  EXPECT_PART(error, "input \"y\"");
  EXPECT_PART(error, "'i32'");
  EXPECT_PART(error, "'f32'");
  EXPECT_PART(error, isTraced() ? "OverlapTest.cpp:" : "row.mlir:7:");
  auto m = start(with(false, own));
  ASSERT_TRUE(m);
  m->set("x", {0, 0});
  m->setView("y", "x", {2}, {1}, 0);
  m->set("v", {0x3fc00000, 0x40400000});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {1.5, 3});
  EXPECT_NUMBERS(m->output("o"), {2.25, 9});
  EXPECT_NUMBERS(m->contents("y"), {0x3fc00000, 0x40400000});
}
