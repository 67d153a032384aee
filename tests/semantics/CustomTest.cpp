//===- CustomTest.cpp - custom_vjp and second order: rows J10 to J15 ------===//
#include "tests/semantics/JointPrograms.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::joint;

namespace {
class Custom : public RowTest {};
class CustomCalls : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Custom);
TANDEM_COMPILED_WAYS(CustomCalls);

//===----------------------------------------------------------------------===//
// custom_vjp
//===----------------------------------------------------------------------===//

TEST_P(Custom, J10_ItsBackwardIsUsed) {
  static const std::string text =
      graph(kX, output("o"),
            custom("%o", "%x", "%y = tandem.sin %a : tensor<2xf32>", R"(
        %seven = tandem.constant dense<7.0> : tensor<2xf32>
        %dx = tandem.mul %dy, %seven : tensor<2xf32>
        tandem.yield %dx : tensor<2xf32>)") +
                "return %o : tensor<2xf32>");
  auto m = start({text.c_str(), [](Trace &t) {
                    t.output("o", custom(
                                      input(t),
                                      [](const Tensor &x) { return sin(x); },
                                      [](const Tensor &dy, const Tensor &) {
                                        return dy * 7.0;
                                      }));
                  }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {0, 0.841471});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {7, 70});
}

TEST_P(Custom, J11_WrongGradientsAreErrors) {
  struct {
    const char *backward;
    std::function<Tensors(const Tensor &dy)> traced;
    const char *expected, *got;
  } cases[] = {
      {"tandem.yield %dy, %dy : tensor<2xf32>, tensor<2xf32>",
       [](const Tensor &dy) {
         return Tensors{dy, dy};
       },
       "1", "2"},
      {"%s = tandem.reshape %dy to [1, 2] : tensor<2xf32> -> tensor<1x2xf32>\n"
       "tandem.yield %s : tensor<1x2xf32>",
       [](const Tensor &dy) {
         return Tensors{dy.view({1, 2})};
       },
       "tensor<2xf32>", "tensor<1x2xf32>"},
      {"%h = tandem.cast %dy : tensor<2xf32> to tensor<2xf64>\n"
       "tandem.yield %h : tensor<2xf64>",
       [](const Tensor &dy) { return Tensors{cast(dy, DType::F64)}; },
       "tensor<2xf32>", "tensor<2xf64>"},
  };
  for (auto &one : cases) {
    std::string text = graph(
        kX, output("o"),
        custom("%o", "%x", "%y = tandem.sin %a : tensor<2xf32>", one.backward) +
            "return %o : tensor<2xf32>");
    auto traced = one.traced;
    std::string error = errorOf(
        {text.c_str(), [traced](Trace &t) {
           t.output("o", customVjp(
                             "f", {input(t)}, {},
                             [](const Tensors &in, const Tensors &,
                                Saver &) -> Tensors { return {sin(in[0])}; },
                             [traced](const Tensors &, const Tensors &dy,
                                      const Tensors &) {
                               return traced(dy[0]);
                             })[0]);
         }});
    EXPECT_PART(error, "expected");
    EXPECT_PART(error, one.expected);
    EXPECT_PART(error, one.got);
  }
}

TEST_P(Custom, J11_NoneContributesNothing) {
  static const std::string text =
      graph(kX, output("o"),
            custom("%c", "%x", "%y = tandem.sin %a : tensor<2xf32>", R"(
        %none = tandem.undefined : tensor<2xf32>
        tandem.yield %none : tensor<2xf32>)") +
                "%o = tandem.mul %c, %x : tensor<2xf32>\n"
                "return %o : tensor<2xf32>");
  auto m =
      start({text.c_str(), [](Trace &t) {
               Tensor x = input(t);
               Tensor c = custom(
                   x, [](const Tensor &x) { return sin(x); },
                   [](const Tensor &, const Tensor &) { return Tensor(); });
               t.output("o", c * x);
             }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0, 8.41471});
}

namespace {

/// Two results; the gradient is 2 of the first's cotangent and 3 of the
/// second's. With `asks`, an undefined one leaves its term out.
Source twoResults(bool asks) {
  static std::string texts[2];
  texts[asks] = graph(
      kX, output("p") + ", " + output("q"),
      R"(%p, %q = tandem.custom_vjp "pair" (%x) forward {
      ^bb0(%a: tensor<2xf32>):
        %e = tandem.exp %a : tensor<2xf32>
        tandem.yield %a, %e : tensor<2xf32>, tensor<2xf32>
    } backward {
      ^bb0(%dp: tensor<2xf32>, %dq: tensor<2xf32>):
        %three = tandem.constant dense<3.0> : tensor<2xf32>
        %l = tandem.add %dp, %dp : tensor<2xf32>
        %r = tandem.mul %dq, %three : tensor<2xf32>
        %dx = tandem.)" +
          std::string(asks ? "accumulate" : "add") + R"( %l, %r : tensor<2xf32>
        tandem.yield %dx : tensor<2xf32>
    })" + (asks ? " {undefined_cotangents}" : "") +
          R"( : (tensor<2xf32>), () -> tensor<2xf32>, tensor<2xf32>
    return %p, %q : tensor<2xf32>, tensor<2xf32>)");
  return {texts[asks].c_str(), [](Trace &t) {
            Tensors pair = customVjp(
                "pair", {input(t)}, {},
                [](const Tensors &in, const Tensors &, Saver &) -> Tensors {
                  return {in[0], exp(in[0])};
                },
                [](const Tensors &, const Tensors &dy, const Tensors &)
                    -> Tensors { return {dy[0] * 2.0 + dy[1] * 3.0}; });
            t.output("p", pair[0]);
            t.output("q", pair[1]);
          }};
}

} // namespace

TEST_P(Custom, J12_AnUndefinedCotangentArrivesAsZeros) {
  for (bool asks : {false, true}) {
    // The tracer's + is not the sum of gradients that may be undefined.
    if (asks && isTraced())
      continue;
    auto m = start(twoResults(asks));
    ASSERT_TRUE(m);
    m->set("x", {0, 1});
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"p", {1, 10}}}, {.retainGraph = true}), "");
    EXPECT_NUMBERS(m->gradient("x"), {2, 20});
    ASSERT_EQ(m->backward({{"q", {1, 10}}}, {.retainGraph = true}), "");
    EXPECT_NUMBERS(m->gradient("x"), {3, 30});
    ASSERT_EQ(
        m->backward({{"p", {1, 10}}, {"q", {1, 1}}}, {.retainGraph = true}),
        "");
    EXPECT_NUMBERS(m->gradient("x"), {5, 23});
    ASSERT_EQ(m->backward({}), "");
    EXPECT_EQ(m->gradient("x"), std::nullopt);
  }
  // Zeros are made of the type alone: no tensor is saved for them.
  std::string text = printed(twoResults(false), "partition");
  EXPECT_FALSE(contains(text, "#tandem.role<saved")) << text;
}

//===----------------------------------------------------------------------===//
// Second order
//===----------------------------------------------------------------------===//

namespace {

Source cube() {
  static const std::string text = graph(kX, output("o"), R"(
    %q = tandem.mul %x, %x : tensor<2xf32>
    %o = tandem.mul %q, %x : tensor<2xf32>
    return %o : tensor<2xf32>)");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t);
            t.output("o", x * x * x);
          }};
}

CompileOptions secondOrder() {
  CompileOptions options;
  options.order = 2;
  return options;
}

} // namespace

TEST_P(CustomCalls, J14_TheSecondDerivativeOfACube) {
  auto m = compiled(cube(), secondOrder());
  ASSERT_TRUE(m);
  m->set("x", {2, -3});
  ASSERT_EQ(m->forward(), "");
  runtime::Tensor ct = tensorOf(DType::F32, {2}, {1, 1}), dx;
  runtime::Argument cotangents[] = {{"o", &ct}};
  runtime::Destination grads[] = {{"x", &dx}};
  runtime::Context graph;
  Status status = m->model.backward(m->context, cotangents, grads,
                                    {.createGraph = true}, &graph);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NUMBERS(numbersOf(dx), {12, 27});
  runtime::Tensor above = tensorOf(DType::F32, {2}, {1, 10}), ddx, dct;
  runtime::Argument second[] = {{"grad of x", &above}};
  runtime::Destination results[] = {{"x", &ddx}, {"cotangent of o", &dct}};
  status = m->model.backward(graph, second, results);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NUMBERS(numbersOf(ddx), {12, -180});
  EXPECT_NUMBERS(numbersOf(dct), {12, 270});
}

TEST_P(Custom, J15_SecondOrderThroughACustomVjp) {
  auto source = [](bool isFirstOrder) {
    static std::string texts[2];
    texts[isFirstOrder] =
        graph(kX, output("o"),
              custom("%o", "%x", "%y = tandem.mul %a, %a : tensor<2xf32>", R"(
        %two = tandem.add %a, %a : tensor<2xf32>
        %dx = tandem.mul %dy, %two : tensor<2xf32>
        tandem.yield %dx : tensor<2xf32>)",
                     isFirstOrder ? "{first_order}" : "") +
                  "return %o : tensor<2xf32>");
    return Source{texts[isFirstOrder].c_str(), [isFirstOrder](Trace &t) {
                    t.output("o", custom(
                                      input(t),
                                      [](const Tensor &x) { return x * x; },
                                      [](const Tensor &dy, const Tensor &x) {
                                        return dy * (x + x);
                                      },
                                      {.firstOrder = isFirstOrder}));
                  }};
  };
  EXPECT_EQ(errorOf(source(false), secondOrder()), "");
  EXPECT_EQ(errorOf(source(true)), "");
  std::string error = errorOf(source(true), secondOrder());
  EXPECT_PART(error, "joint");
  EXPECT_PART(error, "\"f\"");
  if (!isCompiled())
    return;
  auto m = compiled(source(false), secondOrder());
  ASSERT_TRUE(m);
  m->set("x", {2, -3});
  ASSERT_EQ(m->forward(), "");
  runtime::Tensor ct = tensorOf(DType::F32, {2}, {1, 1}), dx;
  runtime::Argument cotangents[] = {{"o", &ct}};
  runtime::Destination grads[] = {{"x", &dx}};
  runtime::Context graph;
  Status status = m->model.backward(m->context, cotangents, grads,
                                    {.createGraph = true}, &graph);
  ASSERT_TRUE(status.ok()) << status.message();
  runtime::Tensor above = tensorOf(DType::F32, {2}, {1, 10}), ddx;
  runtime::Argument second[] = {{"grad of x", &above}};
  runtime::Destination results[] = {{"x", &ddx}};
  ASSERT_TRUE(m->model.backward(graph, second, results).ok());
  EXPECT_NUMBERS(numbersOf(ddx), {2, 20});
}

TEST_P(Custom, J15_OneThatWritesAnInputThatRequiresGrad) {
  static const std::string text =
      graph(argument("%x", "input \"x\" {requires_grad}", "!tandem.ref<2xf32>"),
            output("o"), R"(
    %v = tandem.read %x : !tandem.ref<2xf32>
    %o = tandem.custom_vjp "clear" (%v) refs(%x) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.write %dy into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dy : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  std::string error =
      errorOf({text.c_str(),
               [](Trace &t) {
                 Tensor x = input(t);
                 t.output("o", customVjp(
                                   "clear", {x}, {x},
                                   [](const Tensors &in, const Tensors &,
                                      Saver &) -> Tensors { return {in[0]}; },
                                   [](const Tensors &, const Tensors &dy,
                                      const Tensors &refs) -> Tensors {
                                     refs[0].copy_(dy[0]);
                                     return {dy[0]};
                                   })[0]);
               }},
              secondOrder());
  EXPECT_PART(error, "joint");
  EXPECT_PART(error, "\"x\"");
}
