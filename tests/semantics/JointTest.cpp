//===- JointTest.cpp - the joint graph: rows J01 to J09, J16 to J22 -------===//
#include "tests/semantics/JointPrograms.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::joint;

namespace {
class Joint : public RowTest {};
class JointCalls : public RowTest {};
} // namespace

TANDEM_ALL_WAYS(Joint);
TANDEM_COMPILED_WAYS(JointCalls);

TEST_P(Joint, J01_TheSignatureIsLinkedByName) {
  for (bool isTurned : {false, true}) {
    std::string text = graph(isTurned ? kW + ", " + kX : kX + ", " + kW,
                             output("a") + ", " + output("b"), R"(
          %a = tandem.mul %x, %w : tensor<2xf32>
          %b = tandem.sin %x : tensor<2xf32>
          return %a, %b : tensor<2xf32>, tensor<2xf32>)");
    Source source{text.c_str(), [isTurned](Trace &t) {
                    Tensor w = isTurned ? param(t) : Tensor();
                    Tensor x = input(t);
                    if (!isTurned)
                      w = param(t);
                    t.output("a", x * w);
                    t.output("b", sin(x));
                  }};
    std::string joint = printed(source, "joint");
    for (const char *link : {"cotangent of \"a\"", "cotangent of \"b\"",
                             "grad of \"x\"", "grad of \"w\""})
      EXPECT_EQ(count(joint, link), 1) << link << " in " << joint;
    auto m = start(source);
    ASSERT_TRUE(m);
    m->set("x", {0, 3});
    m->set("w", {5, 7});
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"b", {1, 0}}, {"a", {1, 10}}}), "");
    EXPECT_NUMBERS(m->gradient("x"), {6, 70});
    EXPECT_NUMBERS(m->gradient("w"), {0, 30});
  }
}

namespace {

/// Outputs that have no gradient beside one that has.
Source mixedOutputs() {
  static const std::string text =
      graph(kX,
            output("o") + ", " + output("whole", "tensor<2xi32>") + ", " +
                output("cut") + ", " + output("quiet"),
            R"(
    %o = tandem.sin %x : tensor<2xf32>
    %i = tandem.cast %x : tensor<2xf32> to tensor<2xi32>
    %d = tandem.detach %x : tensor<2xf32>
    %cut = tandem.exp %d : tensor<2xf32>
    %quiet = tandem.exp %x {tandem.no_grad} : tensor<2xf32>
    return %o, %i, %cut, %quiet : tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>)");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t);
            t.output("o", sin(x));
            t.output("whole", cast(x, DType::I32));
            t.output("cut", exp(x.detach()));
            NoGradScope scope = t.noGrad();
            t.output("quiet", exp(x));
          }};
}

} // namespace

TEST_P(Joint, J02_OutputsWithoutACotangent) {
  std::string joint = printed(mixedOutputs(), "joint");
  EXPECT_EQ(count(joint, "#tandem.role<cotangent of"), 1) << joint;
  EXPECT_PART(joint, "cotangent of \"o\"");
}

TEST_P(JointCalls, J02_ACotangentGivenAllTheSame) {
  auto m = compiled(mixedOutputs());
  ASSERT_TRUE(m);
  m->set("x", {0, 3});
  ASSERT_EQ(m->forward(), "");
  for (const char *name : {"whole", "cut", "quiet"}) {
    runtime::Tensor ct = tensorOf(DType::F32, {2}, {1, 1}), dx;
    runtime::Argument cotangents[] = {{"o", &ct}, {name, &ct}};
    runtime::Destination grads[] = {{"x", &dx}};
    Status status = m->model.backward(m->context, cotangents, grads);
    EXPECT_FALSE(status.ok());
    EXPECT_PART(std::string(status.message()), "'" + std::string(name) + "'");
  }
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {1, -0.989992});
}

namespace {

Source unusedParam() {
  static const std::string text =
      graph(kX + ", " + kW + ", " +
                argument("%u", "param \"u\" {requires_grad, init = {kind = "
                               "\"constant\", value = 1.0}}"),
            output("loss", "tensor<f32>"), R"(
    %a = tandem.mul %x, %w : tensor<2xf32>
    %o = tandem.reduce_sum %a over [0] : tensor<2xf32> -> tensor<f32>
    return %o : tensor<f32>)");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t);
            Tensor w = param(t);
            param(t, "u");
            t.output("loss", sum(x * w));
          }};
}

} // namespace

TEST_P(Joint, J03_AParamThatReachesNoOutput) {
  auto m = start(unusedParam());
  ASSERT_TRUE(m);
  m->set("x", {2, 3});
  m->set("w", {5, 7});
  m->set("u", {1, 1});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  EXPECT_NUMBERS(m->gradient("w"), {2, 3});
  EXPECT_EQ(m->gradient("u"), std::nullopt);
}

TEST_P(JointCalls, J03_UpdateLeavesItAlone) {
  CompileOptions options;
  options.optimizer = "adamw:lr=0.1,weight_decay=0.5";
  auto m = compiled(unusedParam(), options);
  ASSERT_TRUE(m);
  m->set("x", {2, 3});
  m->set("w", {5, 7});
  m->set("u", {1, 1});
  for (const artifact::Value &value : m->model.manifest().values)
    EXPECT_FALSE(contains(value.name, ":u")) << value.name;
  runtime::Argument inputs[] = {{"x", &m->tensors["x"]}};
  ASSERT_TRUE(m->model.step(inputs, {}).ok());
  EXPECT_NUMBERS(m->contents("u"), {1, 1});
  EXPECT_NE(m->contents("w"), (Numbers{5, 7}));
}

//===----------------------------------------------------------------------===//
// Undefined cotangents
//===----------------------------------------------------------------------===//

namespace {

/// Three outputs over x, w and v that share some of what they need.
Source threeOutputs() {
  static const std::string text = graph(
      kX + ", " + kW + ", " + argument("%v", "param \"v\" {requires_grad}"),
      output("a") + ", " + output("b") + ", " + output("c"), R"(
    %s = tandem.sin %x : tensor<2xf32>
    %a = tandem.mul %s, %w : tensor<2xf32>
    %e = tandem.exp %s : tensor<2xf32>
    %b = tandem.mul %e, %s : tensor<2xf32>
    %c = tandem.mul %v, %w : tensor<2xf32>
    return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t), w = param(t), v = param(t, "v");
            Tensor s = sin(x);
            t.output("a", s * w);
            t.output("b", exp(s) * s);
            t.output("c", v * w);
          }};
}

} // namespace

TEST_P(Joint, J04_WhatOnlyAnUndefinedCotangentFeedsIsUndefined) {
  auto m = start(threeOutputs());
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  m->set("w", {2, 3});
  m->set("v", {4, 5});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"b", {1, 1}}}, {.retainGraph = true}), "");
  EXPECT_EQ(m->gradient("w"), std::nullopt);
  EXPECT_EQ(m->gradient("v"), std::nullopt);
  EXPECT_TRUE(m->gradient("x"));
  ASSERT_EQ(m->backward({{"c", {1, 1}}}, {.retainGraph = true}), "");
  EXPECT_EQ(m->gradient("x"), std::nullopt);
  EXPECT_NUMBERS(m->gradient("w"), {4, 5});
  EXPECT_NUMBERS(m->gradient("v"), {2, 3});
  ASSERT_EQ(m->backward({}), "");
  for (const char *name : {"x", "w", "v"})
    EXPECT_EQ(m->gradient(name), std::nullopt) << name;
}

TEST_P(Joint, J05_EveryMaskIsAsWithZerosFilledIn) {
  auto m = start(threeOutputs());
  ASSERT_TRUE(m);
  m->set("x", {0.5, 1});
  m->set("w", {2, 3});
  m->set("v", {4, 5});
  ASSERT_EQ(m->forward(), "");
  NamedNumbers all = {{"a", {1, 2}}, {"b", {3, -1}}, {"c", {0.5, 4}}};
  for (unsigned mask = 0; mask < 8; ++mask) {
    NamedNumbers some, filled;
    unsigned bit = 1;
    for (auto &[name, numbers] : all) {
      if (mask & bit)
        some[name] = numbers;
      filled[name] = mask & bit ? numbers : Numbers{0, 0};
      bit *= 2;
    }
    ASSERT_EQ(m->backward(filled, {.retainGraph = true}), "");
    NamedNumbers expected = m->gradients;
    ASSERT_EQ(m->backward(some, {.retainGraph = true}), "");
    NamedNumbers got = m->gradients;
    EXPECT_EQ(got.count("x"), some.count("a") || some.count("b")) << mask;
    EXPECT_EQ(got.count("w"), some.count("a") || some.count("c")) << mask;
    EXPECT_EQ(got.count("v"), some.count("c")) << mask;
    for (auto &[name, numbers] : got)
      EXPECT_PRED_FORMAT2(areNear, std::optional(numbers), expected[name])
          << name << ", mask " << mask;
  }
}

TEST_P(JointCalls, J06_CotangentsOfAnyStridesAndNoOtherType) {
  static const std::string text =
      graph(argument("%x", "input \"x\" {requires_grad}", "tensor<2x3xf32>"),
            output("o", "tensor<2x3xf32>"), R"(
    %o = tandem.sin %x : tensor<2x3xf32>
    return %o : tensor<2x3xf32>)");
  auto m = compiled(
      {text.c_str(), [](Trace &t) {
         Tensor x = t.input("x", {2, 3}, DType::F32, {.requiresGrad = true});
         t.output("o", sin(x));
       }});
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(m->forward(), "");
  auto gradient = [&](const runtime::Tensor &cotangent, Status &status) {
    runtime::Tensor dx;
    runtime::Argument cotangents[] = {{"o", &cotangent}};
    runtime::Destination grads[] = {{"x", &dx}};
    status =
        m->model.backward(m->context, cotangents, grads, {.retainGraph = true});
    return status.ok() ? numbersOf(dx) : Numbers();
  };
  Status status;
  for (auto [dtype, shape] : {std::pair(DType::F32, Shape{3, 2}),
                              std::pair(DType::F64, Shape{2, 3})}) {
    gradient(tensorOf(dtype, shape, {1, 2, 3, 4, 5, 6}), status);
    EXPECT_FALSE(status.ok());
    EXPECT_PART(std::string(status.message()), "expected f32 [2, 3] but got");
  }
  Numbers numbers = {1, 2, 3, 4, 5, 6};
  Numbers expected = gradient(tensorOf(DType::F32, {2, 3}, numbers), status);
  ASSERT_EQ(expected.size(), 6u) << status.message();
  // Permuted, and with a gap behind each element.
  runtime::Tensor permuted = *tensorOf(DType::F32, {3, 2}, {1, 4, 2, 5, 3, 6})
                                  .view(Shape{2, 3}, Shape{1, 2});
  EXPECT_EQ(gradient(permuted, status), expected) << status.message();
  runtime::Tensor gapped =
      *tensorOf(DType::F32, {2, 6}, {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0})
           .view(Shape{2, 3}, Shape{6, 2});
  EXPECT_EQ(gradient(gapped, status), expected) << status.message();
  runtime::Tensor one =
      *tensorOf(DType::F32, {1}, {2}).view(Shape{2, 3}, Shape{0, 0});
  EXPECT_EQ(gradient(one, status),
            gradient(tensorOf(DType::F32, {2, 3}, {2, 2, 2, 2, 2, 2}), status));
}

//===----------------------------------------------------------------------===//
// What is differentiated
//===----------------------------------------------------------------------===//

TEST_P(Joint, J07_DetachedPathsAndGradModes) {
  static const std::string text = graph(kX, output("o"), R"(
    %d = tandem.detach %x : tensor<2xf32>
    %a = tandem.mul %x, %d : tensor<2xf32>
    %b = tandem.exp %x {tandem.no_grad} : tensor<2xf32>
    %c = tandem.sin %x : tensor<2xf32>
    %e = tandem.add %b, %c {tandem.no_grad} : tensor<2xf32>
    %f = tandem.add %a, %e : tensor<2xf32>
    %o = tandem.add %f, %c : tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor x = input(t);
                    Tensor a = x * x.detach();
                    Tensor c, e;
                    {
                      NoGradScope off = t.noGrad();
                      Tensor b = exp(x);
                      {
                        EnableGradScope on = t.enableGrad();
                        c = sin(x);
                      }
                      e = b + c;
                    }
                    t.output("o", a + e + c);
                  }});
  ASSERT_TRUE(m);
  m->set("x", {0, 2});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  // x once, and cos(x) once: not exp, and not the sum made without gradients.
  EXPECT_NUMBERS(m->gradient("x"), {0 + 1, 2 - 0.416147});
}

TEST_P(JointCalls, J08_NothingRequiresGrad) {
  static const std::string text =
      graph(argument("%x", "input \"x\""), output("o"),
            "%o = tandem.sin %x : tensor<2xf32>\nreturn %o : tensor<2xf32>");
  auto m = compiled(
      {text.c_str(), [](Trace &t) { t.output("o", sin(t.input("x", {2}))); }});
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->model.hasProgram("backward"));
  for (const artifact::Slot &slot :
       m->model.manifest().findProgram("forward")->results)
    EXPECT_NE(slot.role, artifact::Role::Saved) << slot.name;
  m->set("x", {0, 1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_PART(m->backward({}), "backward");
}

TEST_P(Joint, J09_UsesAddUpAndBroadcastsAreSummed) {
  static const std::string text =
      graph(argument("%x", "input \"x\" {requires_grad}", "tensor<1xf32>"),
            output("o"), R"(
    %b = tandem.broadcast %x to [2] along [0] : tensor<1xf32> -> tensor<2xf32>
    %q = tandem.mul %b, %b : tensor<2xf32>
    %c = tandem.mul %q, %b : tensor<2xf32>
    %o = tandem.add %c, %b : tensor<2xf32>
    return %o : tensor<2xf32>)");
  Source source{text.c_str(), [](Trace &t) {
                  Tensor x =
                      t.input("x", {1}, DType::F32, {.requiresGrad = true});
                  Tensor b = x.expand({2});
                  t.output("o", b * b * b + b);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {2});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {11 * 13});
  // A fixed order: the text does not change.
  EXPECT_EQ(printed(source, "joint"), printed(source, "joint"));
}

TEST_P(Joint, J16_AGradientInsideOfTheForward) {
  static const std::string text =
      graph(argument("%x", "input \"x\"") + ", " + kW, output("o"), R"(
    %y = tandem.mul %x, %w : tensor<2xf32>
    %e = tandem.sin %y : tensor<2xf32>
    %o = tandem.grad %e wrt (%x) : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor x = t.input("x", {2});
                    Tensor w = param(t);
                    t.output("o", grad(sin(x * w), {x})[0]);
                  }});
  ASSERT_TRUE(m);
  m->set("x", {1, 0.5});
  m->set("w", {0.5, 2});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {0.5 * std::cos(0.5), 2 * std::cos(1)});
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  // d/dw (w cos(x w)) = cos(x w) - x w sin(x w).
  EXPECT_NUMBERS(m->gradient("w"), {std::cos(0.5) - 0.5 * std::sin(0.5),
                                    std::cos(1) - std::sin(1)});
}

TEST_P(Joint, J17_TheLossIsFoundByName) {
  static const std::string text = graph(
      argument("%s", "state \"s\" {init = {kind = \"constant\", value = 0.0}}",
               "!tandem.ref<2xf32>") +
          ", " + kX + ", " + kW,
      output("other") + ", " + output("penalty", "tensor<f32>") + ", " +
          output("last"),
      R"(
    %m = tandem.mul %x, %w : tensor<2xf32>
    tandem.write %m into %s {tandem.no_grad} : tensor<2xf32>, !tandem.ref<2xf32>
    %p = tandem.reduce_sum %m over [0] : tensor<2xf32> -> tensor<f32>
    %l = tandem.exp %m : tensor<2xf32>
    return %m, %p, %l : tensor<2xf32>, tensor<f32>, tensor<2xf32>)");
  CompileOptions options;
  options.loss = "penalty";
  auto m = start({text.c_str(),
                  [](Trace &t) {
                    Tensor s = t.state("s", {2}, Init::constant(0));
                    Tensor x = input(t), w = param(t);
                    Tensor m = x * w;
                    {
                      NoGradScope scope = t.noGrad();
                      s.copy_(m);
                    }
                    t.output("other", m);
                    t.output("penalty", sum(m));
                    t.output("last", exp(m));
                  }},
                 options);
  ASSERT_TRUE(m);
  m->set("s", {0, 0});
  m->set("x", {2, 3});
  m->set("w", {5, 7});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"penalty", {1}}}), "");
  EXPECT_NUMBERS(m->gradient("w"), {2, 3});
  EXPECT_NUMBERS(m->contents("s"), {10, 21});
}

TEST_P(JointCalls, J18_CompiledWithoutGradAndCalledWithIt) {
  static const std::string text =
      graph(argument("%x", "input \"x\"") + ", " + kW, output("o"),
            "%o = tandem.mul %x, %w : tensor<2xf32>\n"
            "return %o : tensor<2xf32>");
  auto m = compiled({text.c_str(), [](Trace &t) {
                       Tensor x = t.input("x", {2});
                       Tensor w = param(t);
                       t.output("o", x * w);
                     }});
  ASSERT_TRUE(m);
  m->set("x", {2, 3});
  m->set("w", {5, 7});
  ASSERT_EQ(m->forward(), "");
  ASSERT_TRUE(m->tensors["x"].setRequiresGrad(true).ok());
  EXPECT_PART(m->forward(), "'x'");
  // The reverse: compiled with, called without.
  static const std::string square =
      graph(kX, output("o"),
            "%o = tandem.mul %x, %x : tensor<2xf32>\n"
            "return %o : tensor<2xf32>");
  auto n = compiled({square.c_str(), [](Trace &t) {
                       Tensor x = input(t);
                       t.output("o", x * x);
                     }});
  ASSERT_TRUE(n);
  n->set("x", {2, 3});
  ASSERT_TRUE(n->tensors["x"].setRequiresGrad(false).ok());
  ASSERT_EQ(n->forward(), "");
  ASSERT_EQ(n->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(n->gradient("x"), {4, 6});
}

TEST_P(Joint, J19_AnAbsentGradientIsUndefined) {
  static const std::string text = graph(kX + ", " + kW, output("o"), R"(
    %d = tandem.detach %x : tensor<2xf32>
    %o = tandem.mul %d, %w : tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor x = input(t), w = param(t);
                    t.output("o", x.detach() * w);
                  }});
  ASSERT_TRUE(m);
  m->set("x", {2, 3});
  m->set("w", {5, 7});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_EQ(m->gradient("x"), std::nullopt);
  EXPECT_NUMBERS(m->gradient("w"), {2, 3});
}

TEST_P(Joint, J20_EqualExpressionsOfTwoGradModes) {
  static const std::string text = graph(kX, output("o"), R"(
    %a = tandem.exp %x : tensor<2xf32>
    %b = tandem.exp %x {tandem.no_grad} : tensor<2xf32>
    %o = tandem.mul %a, %b : tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor x = input(t);
                    Tensor a = exp(x), b;
                    {
                      NoGradScope scope = t.noGrad();
                      b = exp(x);
                    }
                    t.output("o", a * b);
                  }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  // exp(x)^2, of which one factor counts.
  EXPECT_NUMBERS(m->gradient("x"), {1, 7.389056});
}

TEST_P(Joint, J21_EveryOpHasItsPassAndItsPlace) {
  for (const char *phase : {"joint", "optimize"}) {
    std::string text = printed(threeOutputs(), phase);
    size_t begin = text.find("func.func @joint"),
           end = text.find("func.func @evaluate");
    ASSERT_NE(begin, std::string::npos);
    std::string joint = text.substr(begin, end > begin ? end - begin : end);
    EXPECT_EQ(count(joint, "= tandem."), count(joint, "tandem.pass = "))
        << joint;
    EXPECT_GT(count(joint, "tandem.pass = \"backward\""), 0);
    EXPECT_PART(printed(threeOutputs(), phase, {}, /*withPlaces=*/true),
                "loc(\"grad of sin\"(");
  }
}

TEST_P(Joint, J22_TheTypeOfAGradient) {
  static const std::string text = graph(
      argument("%x", "input \"x\" {requires_grad, grad_type = f64}") + ", " +
          argument("%h", "param \"h\" {requires_grad}", "tensor<2xf16>"),
      output("o"), R"(
    %c = tandem.cast %h : tensor<2xf16> to tensor<2xf32>
    %o = tandem.mul %x, %c : tensor<2xf32>
    return %o : tensor<2xf32>)");
  Source source{text.c_str(), [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32,
                              {.requiresGrad = true, .gradType = DType::F64});
                  Tensor h =
                      t.parameter("h", {2}, Init::constant(1), DType::F16);
                  t.output("o", x * cast(h, DType::F32));
                }};
  std::string joint = printed(source, "joint");
  EXPECT_PART(joint, "tensor<2xf64> {tandem.role = #tandem.role<grad of \"x\"");
  EXPECT_PART(joint, "tensor<2xf16> {tandem.role = #tandem.role<grad of \"h\"");
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {2, 3});
  m->set("h", {5, 7});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {5, 7});
  EXPECT_NUMBERS(m->gradient("h"), {2, 3});

  static const std::string integer =
      graph(argument("%x", "input \"x\" {requires_grad}", "tensor<2xi32>"),
            output("o", "tensor<2xi32>"), "return %x : tensor<2xi32>");
  EXPECT_PART(errorOf({integer.c_str(),
                       [](Trace &t) {
                         t.output("o", t.input("x", {2}, DType::I32,
                                               {.requiresGrad = true}));
                       }}),
              "'input \"x\"' requires grad");
}

TEST_P(Joint, J13_AnOpWithoutAGradient) {
  // On the way to a gradient that is wanted, and elsewhere.
  for (bool isOnTheWay : {true, false}) {
    std::string from = isOnTheWay ? "%x" : "%c";
    std::string text =
        graph(kX + ", " + argument("%c", "input \"c\""), output("o"),
              "%h = tandem.cast " + from +
                  R"( : tensor<2xf32> to tensor<2xf16>
    %b = tandem.bitcast %h : tensor<2xf16> -> tensor<2xbf16>
    %f = tandem.cast %b : tensor<2xbf16> to tensor<2xf32>
    %o = tandem.mul %f, %x : tensor<2xf32>
    return %o : tensor<2xf32>)");
    std::string error =
        errorOf({text.c_str(), [isOnTheWay](Trace &t) {
                   Tensor x = input(t);
                   Tensor c = t.input("c", {2});
                   Tensor h = cast(isOnTheWay ? x : c, DType::F16);
                   t.output("o", cast(h.bitcast(DType::BF16), DType::F32) * x);
                 }});
    if (!isOnTheWay) {
      EXPECT_EQ(error, "");
      continue;
    }
    EXPECT_PART(error, "joint");
    EXPECT_PART(error, "'tandem.bitcast' op has no gradient");
    EXPECT_PART(error, "'input \"x\"'");
  }
}
