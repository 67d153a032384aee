//===- BranchTest.cpp - branches, and loops that end when data says -------===//
#include "compiler/trace/Flow.h"
#include "tests/semantics/JointPrograms.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::joint;

namespace {
class Branches : public RowTest {};

const std::string kCondition = argument("%c", "input \"c\"", "tensor<i1>");

CompileOptions forCuda() {
  CompileOptions options;
  options.target = "cuda:sm_90";
  return options;
}
} // namespace
TANDEM_ALL_WAYS(Branches);

namespace {
/// sqrt(x) w, or x^2.
Source branches() {
  static const std::string text =
      graph(kX + ", " + kW + ", " + kCondition, output("o"),
            R"(%o = tandem.if %c (%x, %w) then {
      ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
        %r = tandem.sqrt %a : tensor<2xf32>
        %p = tandem.mul %r, %b : tensor<2xf32>
        tandem.yield %p : tensor<2xf32>
      } else {
      ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
        %p = tandem.mul %a, %a : tensor<2xf32>
        tandem.yield %p : tensor<2xf32>
      } : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %o : tensor<2xf32>)");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t), w = param(t);
            Tensor c = t.input("c", {}, DType::Bool);
            t.output("o", cond(
                              c, {x, w},
                              [](const Tensors &in) -> Tensors {
                                return {sqrt(in[0]) * in[1]};
                              },
                              [](const Tensors &in) -> Tensors {
                                return {in[0] * in[0]};
                              })[0]);
          }};
}
} // namespace

TEST_P(Branches, ABranchIsTaken) {
  auto m = start(branches());
  ASSERT_TRUE(m);
  m->set("w", {3, 5});
  m->set("c", {1});
  m->set("x", {4, 25});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {6, 25});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0.75, 5});
  EXPECT_NUMBERS(m->gradient("w"), {2, 50});
  // The root and its slope are no numbers here.
  m->set("c", {0});
  m->set("x", {-3, 0});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {9, 0});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {-6, 0});
  EXPECT_NUMBERS(m->gradient("w"), {0, 0});
}

namespace {
/// Doubles x until its sum is at least 100; counts how often.
Source doubling(bool requiresGrad = false) {
  static std::string texts[2];
  std::string &text = texts[requiresGrad];
  text = graph(argument("%x", requiresGrad ? "input \"x\" {requires_grad}"
                                           : "input \"x\""),
               output("o") + ", " + output("n", "tensor<i64>"),
               R"(%zero = tandem.constant dense<0> : tensor<i64>
      %most = tandem.constant dense<100.0> : tensor<f32>
      %o, %n = tandem.while carries(%x, %zero) constants(%most) condition {
      ^bb0(%a: tensor<2xf32>, %i: tensor<i64>, %m: tensor<f32>):
        %s = tandem.reduce_sum %a over [0] : tensor<2xf32> -> tensor<f32>
        %l = tandem.compare lt %s, %m : tensor<f32>
        tandem.yield %l : tensor<i1>
      } body {
      ^bb0(%a: tensor<2xf32>, %i: tensor<i64>, %m: tensor<f32>):
        %one = tandem.constant dense<1> : tensor<i64>
        %b = tandem.add %a, %a : tensor<2xf32>
        %j = tandem.add %i, %one : tensor<i64>
        tandem.yield %b, %j : tensor<2xf32>, tensor<i64>
      } : (tensor<2xf32>, tensor<i64>, tensor<f32>) -> (tensor<2xf32>, tensor<i64>)
      return %o, %n : tensor<2xf32>, tensor<i64>)");
  return {text.c_str(), [=](Trace &t) {
            Tensor x =
                t.input("x", {2}, DType::F32, {.requiresGrad = requiresGrad});
            Tensors made = whileLoop(
                {x, t.constant({}, 0, DType::I64)}, {t.constant({}, 100)},
                [](const Tensors &carries, const Tensors &constants) {
                  return less(sum(carries[0]), constants[0]);
                },
                [](const Tensors &carries, const Tensors &) -> Tensors {
                  return {carries[0] + carries[0], carries[1] + 1};
                });
            t.output("o", made[0]);
            t.output("n", made[1]);
          }};
}
} // namespace

TEST_P(Branches, AWhileEndsWhenItsConditionSays) {
  Source source = doubling();
  if (isCuda()) {
    EXPECT_PART(errorOf(source, forCuda()), "unsupported: 'tandem.while'");
    return;
  }
  auto m = start(source);
  ASSERT_TRUE(m);
  const std::tuple<Numbers, Numbers, double> cases[] = {
      {{1, 2}, {64, 128}, 6}, {{60, 50}, {60, 50}, 0}, {{99, 0}, {198, 0}, 1}};
  for (auto &[x, o, n] : cases) {
    m->set("x", x);
    ASSERT_EQ(m->forward(), "");
    EXPECT_PRED_FORMAT2(areNear, m->output("o"), o);
    EXPECT_NUMBERS(m->output("n"), {n});
  }
}

TEST_P(Branches, AWhileHasNoGradient) {
  EXPECT_PART(errorOf(doubling(/*requiresGrad=*/true)),
              "'tandem.while' op has no gradient, but 'input \"x\"' (argument "
              "#0) requires one");
}

// A loop in a branch in a loop: what a branch does not need is not run, and
// constants of the innermost region come from outside.
TEST_P(Branches, LoopsInBranchesInLoops) {
  if (isCuda())
    return;
  static const std::string text =
      graph(argument("%x", "input \"x\""), output("o"),
            R"(%o = tandem.scan 600 carries(%x) inputs() constants() {
      ^bb0(%a: tensor<2xf32>):
        %s = tandem.reduce_max %a over [0] : tensor<2xf32> -> tensor<f32>
        %ten = tandem.constant dense<10.0> : tensor<f32>
        %c = tandem.compare gt %s, %ten : tensor<f32>
        %half = tandem.constant dense<[0.5, 0.25]> : tensor<2xf32>
        %r = tandem.if %c (%a, %half, %s) then {
        ^bb0(%p: tensor<2xf32>, %h: tensor<2xf32>, %z: tensor<f32>):
          %w = tandem.while carries(%p) constants(%h) condition {
          ^bb0(%q: tensor<2xf32>, %k: tensor<2xf32>):
            %m = tandem.reduce_max %q over [0] : tensor<2xf32> -> tensor<f32>
            %one = tandem.constant dense<1.0> : tensor<f32>
            %g = tandem.compare gt %m, %one : tensor<f32>
            tandem.yield %g : tensor<i1>
          } body {
          ^bb0(%q: tensor<2xf32>, %k: tensor<2xf32>):
            %v = tandem.mul %q, %k : tensor<2xf32>
            tandem.yield %v : tensor<2xf32>
          } : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          tandem.yield %w : tensor<2xf32>
        } else {
        ^bb0(%p: tensor<2xf32>, %h: tensor<2xf32>, %z: tensor<f32>):
          %three = tandem.constant dense<[3.0, 2.0]> : tensor<2xf32>
          %v = tandem.mul %p, %three : tensor<2xf32>
          tandem.yield %v : tensor<2xf32>
        } : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
        tandem.yield %r : tensor<2xf32>
      } : (tensor<2xf32>) -> tensor<2xf32>
      return %o : tensor<2xf32>)");
  auto m = start(
      {text.c_str(), [](Trace &t) {
         Tensor x = t.input("x", {2}, DType::F32);
         ScanOptions options;
         options.length = 600;
         t.output("o", scan(
                           {x}, {}, {},
                           [](const Tensors &carries, const Tensors &,
                              const Tensors &) -> ScanStep {
                             Tensor a = carries[0];
                             return {cond(
                                         greater(max(a), 10.0), {a},
                                         [](const Tensors &in) -> Tensors {
                                           return whileLoop(
                                               {in[0]}, {},
                                               [](const Tensors &c,
                                                  const Tensors &) {
                                                 return greater(max(c[0]), 1.0);
                                               },
                                               [](const Tensors &c,
                                                  const Tensors &) -> Tensors {
                                                 return {c[0] * 0.5};
                                               });
                                         },
                                         [](const Tensors &in) -> Tensors {
                                           return {in[0] * 3.0};
                                         }),
                                     {}};
                           },
                           options)
                           .carries[0]);
       }});
  ASSERT_TRUE(m);
  Numbers x = {1, 0.5};
  m->set("x", x);
  ASSERT_EQ(m->forward(), "");
  for (int t = 0; t < 600; ++t) {
    if (std::max(x[0], x[1]) > 10) {
      while (std::max(x[0], x[1]) > 1) {
        x[0] *= 0.5;
        x[1] *= isTraced() ? 0.5 : 0.25;
      }
    } else {
      x[0] *= 3;
      x[1] *= isTraced() ? 3 : 2;
    }
  }
  EXPECT_PRED_FORMAT2(areNear, m->output("o"), x);
}
