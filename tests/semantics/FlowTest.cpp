//===- FlowTest.cpp - loops of a known length, and regions ----------------===//
//
// Short loops are expanded; long ones, and those without a known end, run as
// loops on the CPU and are errors for CUDA.
//
//===----------------------------------------------------------------------===//
#include "compiler/trace/Flow.h"
#include "tests/semantics/JointPrograms.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::joint;

namespace {
class Flow : public RowTest {};
class FlowCalls : public RowTest {};

void expectNear(const std::optional<Numbers> &actual, const Numbers &expected,
                const std::string &what) {
  EXPECT_PRED_FORMAT2(areNear, actual, expected) << what;
}

const std::string kTrips = argument("%n", "input \"n\"", "tensor<i64>");
const std::string kCondition = argument("%c", "input \"c\"", "tensor<i1>");

std::string stack(int length) {
  return "tensor<" + std::to_string(length) + "x2xf32>";
}

/// h' = h w + x over the slices of "xs"; gives h, and h w of each iteration.
Source recurrence(int length, bool hasTrips, bool reverse = false) {
  static std::vector<std::unique_ptr<std::string>> texts;
  std::string words = std::to_string(length) + (reverse ? " reverse" : "") +
                      (hasTrips ? " trips %n" : "");
  texts.push_back(std::make_unique<std::string>(
      graph(argument("%xs", "input \"xs\" {requires_grad}", stack(length)) +
                ", " + kX + ", " + kW + (hasTrips ? ", " + kTrips : ""),
            output("h") + ", " + output("ps", stack(length)),
            "%h, %ps = tandem.scan " + words +
                R"( carries(%x) inputs(%xs) constants(%w) {
      ^bb0(%a: tensor<2xf32>, %s: tensor<2xf32>, %b: tensor<2xf32>):
        %p = tandem.mul %a, %b : tensor<2xf32>
        %q = tandem.add %p, %s : tensor<2xf32>
        tandem.yield %q, %p : tensor<2xf32>, tensor<2xf32>
      } : ()" + (hasTrips ? "tensor<i64>, " : "") +
                "tensor<2xf32>, " + stack(length) +
                ", tensor<2xf32>) -> (tensor<2xf32>, " + stack(length) +
                ")\nreturn %h, %ps : tensor<2xf32>, " + stack(length))));
  return {texts.back()->c_str(), [=](Trace &t) {
            Tensor xs =
                t.input("xs", {length, 2}, DType::F32, {.requiresGrad = true});
            Tensor x = input(t), w = param(t);
            ScanOptions options;
            options.reverse = reverse;
            if (hasTrips)
              options.trips = t.input("n", {}, DType::I64);
            ScanStep made = scan(
                {x}, {xs}, {w},
                [](const Tensors &carries, const Tensors &slices,
                   const Tensors &constants) -> ScanStep {
                  Tensor p = carries[0] * constants[0];
                  return {{p + slices[0]}, {p}};
                },
                options);
            t.output("h", made.carries[0]);
            t.output("ps", made.outputs[0]);
          }};
}

/// What the recurrence gives, and the gradients of sum(h) + sum(ps).
struct Expected {
  Numbers h, ps, dx, dw, dxs;
  Expected(const Numbers &x, const Numbers &w, const Numbers &xs, int length,
           int trips, bool reverse)
      : h(x), ps(2 * length), dx(2, 1), dw(2, 0), dxs(2 * length) {
    std::vector<Numbers> before;
    for (int k = 0; k < trips; ++k) {
      int t = reverse ? trips - 1 - k : k;
      before.push_back(h);
      for (int i : {0, 1}) {
        ps[2 * t + i] = h[i] * w[i];
        h[i] = h[i] * w[i] + xs[2 * t + i];
      }
    }
    for (int k = trips - 1; k >= 0; --k) {
      int t = reverse ? trips - 1 - k : k;
      for (int i : {0, 1}) {
        dxs[2 * t + i] = dx[i];
        double dp = dx[i] + 1;
        dw[i] += dp * before[k][i];
        dx[i] = dp * w[i];
      }
    }
  }
};

CompileOptions forCuda() {
  CompileOptions options;
  options.target = "cuda:sm_90";
  return options;
}

Numbers ramp(int size) {
  Numbers numbers(size);
  for (int i = 0; i < size; ++i)
    numbers[i] = (i % 7 - 3) * 0.25;
  return numbers;
}
} // namespace
TANDEM_ALL_WAYS(Flow);
TANDEM_COMPILED_WAYS(FlowCalls);

static void checkRecurrence(Machine &m, int length, std::optional<int> trips,
                            bool reverse) {
  Numbers x = {1, -2}, w = {0.5, -0.75}, xs = ramp(2 * length);
  m.set("x", x);
  m.set("w", w);
  m.set("xs", xs);
  if (trips)
    m.set("n", {double(*trips)});
  int done = std::clamp(trips.value_or(length), 0, length);
  Expected expected(x, w, xs, length, done, reverse);
  std::string what = std::to_string(done) + " of " + std::to_string(length);
  ASSERT_EQ(m.forward(), "");
  expectNear(m.output("h"), expected.h, what);
  expectNear(m.output("ps"), expected.ps, what);
  ASSERT_EQ(m.backward({{"h", {1, 1}}, {"ps", Numbers(2 * length, 1)}}), "");
  expectNear(m.gradient("x"), expected.dx, what);
  // A sum of as many numbers as there are iterations, in f32.
  std::optional<Numbers> dw = m.gradient("w");
  ASSERT_TRUE(dw);
  for (int i : {0, 1})
    EXPECT_NEAR((*dw)[i], expected.dw[i], 1e-6 + 1e-7 * length) << what;
  expectNear(m.gradient("xs"), expected.dxs, what);
}

TEST_P(Flow, AScanIsALoop) {
  for (bool reverse : {false, true}) {
    auto m = start(recurrence(5, /*hasTrips=*/false, reverse));
    ASSERT_TRUE(m);
    checkRecurrence(*m, 5, std::nullopt, reverse);
  }
}

TEST_P(Flow, AScanStopsWhereDataSays) {
  for (bool reverse : {false, true}) {
    auto m = start(recurrence(5, /*hasTrips=*/true, reverse));
    ASSERT_TRUE(m);
    for (int trips : {0, 1, 3, 5, 8, -2})
      checkRecurrence(*m, 5, trips, reverse);
  }
}

// More iterations than are expanded.
TEST_P(Flow, ALongScanRunsAsALoop) {
  constexpr int length = 20000;
  for (bool reverse : {false, true}) {
    Source source = recurrence(length, /*hasTrips=*/true, reverse);
    if (isCuda()) {
      EXPECT_PART(errorOf(source, forCuda()), "unsupported: the loops of");
      continue;
    }
    auto m = start(source);
    ASSERT_TRUE(m);
    for (int trips : {0, 1, 19999, 20000, 20001})
      checkRecurrence(*m, length, trips, reverse);
  }
}

// Slices of 64 bytes begin where kernels want buffers to: nothing is copied.
TEST_P(Flow, SlicesOfALongScanInPlace) {
  if (isCuda())
    return;
  constexpr int length = 1500, width = 16;
  static const std::string text = graph(
      argument("%xs", "input \"xs\" {requires_grad}", "tensor<1500x16xf32>") +
          ", " + argument("%x", "input \"x\"", "tensor<16xf32>"),
      output("h", "tensor<16xf32>") + ", " +
          output("ss", "tensor<1500x16xf32>"),
      R"(%h, %ss = tandem.scan 1500 carries(%x) inputs(%xs) constants() {
      ^bb0(%a: tensor<16xf32>, %s: tensor<16xf32>):
        %p = tandem.mul %s, %s : tensor<16xf32>
        %q = tandem.add %a, %p : tensor<16xf32>
        tandem.yield %q, %p : tensor<16xf32>, tensor<16xf32>
      } : (tensor<16xf32>, tensor<1500x16xf32>) -> (tensor<16xf32>, tensor<1500x16xf32>)
      return %h, %ss : tensor<16xf32>, tensor<1500x16xf32>)");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor xs = t.input("xs", {length, width}, DType::F32,
                                        {.requiresGrad = true});
                    Tensor x = t.input("x", {width});
                    ScanStep made =
                        scan({x}, {xs}, {},
                             [](const Tensors &carries, const Tensors &slices,
                                const Tensors &) -> ScanStep {
                               Tensor p = slices[0] * slices[0];
                               return {{carries[0] + p}, {p}};
                             });
                    t.output("h", made.carries[0]);
                    t.output("ss", made.outputs[0]);
                  }});
  ASSERT_TRUE(m);
  Numbers xs = ramp(length * width), x(width, 1), h = x, ss, dxs;
  for (int i = 0; i < length * width; ++i) {
    ss.push_back(xs[i] * xs[i]);
    h[i % width] += ss.back();
    dxs.push_back(2 * xs[i] * (1 + i % 3));
  }
  m->set("xs", xs);
  m->set("x", x);
  ASSERT_EQ(m->forward(), "");
  expectNear(m->output("h"), h, "h");
  expectNear(m->output("ss"), ss, "ss");
  Numbers dss(length * width);
  for (int i = 0; i < length * width; ++i)
    dss[i] = i % 3;
  ASSERT_EQ(m->backward({{"h", Numbers(width, 1)}, {"ss", dss}}), "");
  expectNear(m->gradient("xs"), dxs, "dxs");
}

// The cotangent of one result alone, and of none that a gradient follows from.
TEST_P(Flow, OneResultOfAScan) {
  auto m = start(recurrence(3, /*hasTrips=*/false));
  ASSERT_TRUE(m);
  m->set("x", {1, 1});
  m->set("w", {2, 3});
  m->set("xs", {0, 0, 0, 0, 0, 0});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"h", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {8, 270});
  EXPECT_NUMBERS(m->gradient("w"), {12, 270});
  EXPECT_NUMBERS(m->gradient("xs"), {4, 90, 2, 30, 1, 10});
}

TEST_P(Flow, WhatAScanLeavesOutIsNoNumberAndDoesNoHarm) {
  // The root of a negative number, from the third iteration on.
  static const std::string text =
      graph(kX + ", " + kTrips, output("h"),
            R"(%h = tandem.scan 4 trips %n carries(%x) inputs() constants() {
      ^bb0(%a: tensor<2xf32>):
        %two = tandem.constant dense<2.0> : tensor<2xf32>
        %m = tandem.sub %a, %two : tensor<2xf32>
        %r = tandem.sqrt %m : tensor<2xf32>
        tandem.yield %r : tensor<2xf32>
      } : (tensor<i64>, tensor<2xf32>) -> tensor<2xf32>
      return %h : tensor<2xf32>)");
  auto m =
      start({text.c_str(), [](Trace &t) {
               ScanOptions options;
               options.length = 4;
               Tensor x = input(t);
               options.trips = t.input("n", {}, DType::I64);
               t.output("h", scan(
                                 {x}, {}, {},
                                 [](const Tensors &carries, const Tensors &,
                                    const Tensors &) -> ScanStep {
                                   return {{sqrt(carries[0] - 2.0)}, {}};
                                 },
                                 options)
                                 .carries[0]);
             }});
  ASSERT_TRUE(m);
  m->set("x", {6, 27});
  m->set("n", {1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("h"), {2, 5});
  ASSERT_EQ(m->backward({{"h", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0.25, 0.1});
}

// Storage that a region makes is its own.
TEST_P(Flow, RegionsWriteWhatTheyMake) {
  static const std::string text = graph(kX + ", " + kCondition, output("o"),
                                        R"(%o = tandem.if %c (%x) then {
      ^bb0(%a: tensor<2xf32>):
        %r = tandem.make_ref %a : tensor<2xf32>
        %v = tandem.slice %r from [0] to [1] step [1] : !tandem.ref<2xf32> -> !tandem.ref<1xf32>
        %k = tandem.constant dense<7.0> : tensor<1xf32>
        tandem.write %k into %v : tensor<1xf32>, !tandem.ref<1xf32>
        %n = tandem.read %r : !tandem.ref<2xf32>
        tandem.yield %n : tensor<2xf32>
      } else {
      ^bb0(%a: tensor<2xf32>):
        tandem.yield %a : tensor<2xf32>
      } : (tensor<2xf32>) -> tensor<2xf32>
      return %o : tensor<2xf32>)");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor x = input(t);
                    Tensor c = t.input("c", {}, DType::Bool);
                    t.output("o", cond(
                                      c, {x},
                                      [](const Tensors &in) -> Tensors {
                                        Tensor y = in[0].clone();
                                        Tensor v = y.slice(0, 0, 1);
                                        v.sub_(v);
                                        v.add_(7);
                                        return {y};
                                      },
                                      [](const Tensors &in) -> Tensors {
                                        return {in[0]};
                                      })[0]);
                  }});
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->set("c", {1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {7, 2});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0, 10});
}

TEST_P(Flow, RegionsCannotWriteWhatTheyAreGiven) {
  if (!isTraced())
    return;
  std::string error = captured(
      {nullptr, [](Trace &t) {
         Tensor x = input(t);
         t.output("o", cond(
                           t.input("c", {}, DType::Bool), {x},
                           [](const Tensors &in) -> Tensors {
                             in[0].add_(1);
                             return {in[0]};
                           },
                           [&](const Tensors &) -> Tensors { return {x}; })[0]);
       }});
  EXPECT_PART(error, "writes argument #0 of the branch 'then', which is a "
                     "value; expected a clone of it to be written");
  EXPECT_PART(error, "expected tensors of the branch 'else', but got one of "
                     "the program");
}

// What a loop computes is what the same ops compute one after the other.
TEST_P(Flow, AScanIsItsIterationsBitForBit) {
  auto loop = start(recurrence(4, /*hasTrips=*/false));
  static const std::string text =
      graph(argument("%xs", "input \"xs\" {requires_grad}", stack(4)) + ", " +
                kX + ", " + kW,
            output("h"), [] {
              std::string body, h = "%x";
              for (int t = 0; t < 4; ++t) {
                std::string n = std::to_string(t), m = std::to_string(t + 1);
                body += "%s" + n + " = tandem.slice %xs from [" + n +
                        ", 0] to [" + m + ", 2] step [1, 1] : " + stack(4) +
                        " -> tensor<1x2xf32>\n%r" + n + " = tandem.reshape %s" +
                        n + " to [2] : tensor<1x2xf32> -> tensor<2xf32>\n%p" +
                        n + " = tandem.mul " + h + ", %w : tensor<2xf32>\n%h" +
                        n + " = tandem.add %p" + n + ", %r" + n +
                        " : tensor<2xf32>\n";
                h = "%h" + n;
              }
              return body + "return " + h + " : tensor<2xf32>";
            }());
  auto unrolled = start(
      {text.c_str(), [](Trace &t) {
         Tensor xs = t.input("xs", {4, 2}, DType::F32, {.requiresGrad = true});
         Tensor h = input(t), w = param(t);
         for (int i = 0; i < 4; ++i)
           h = h * w + xs.slice(0, i, i + 1).view({2});
         t.output("h", h);
       }});
  ASSERT_TRUE(loop && unrolled);
  for (Machine *m : {loop.get(), unrolled.get()}) {
    m->set("x", {0.1, 0.7});
    m->set("w", {1.3, -0.9});
    m->set("xs", {0.3, 0.2, 0.1, 0.9, 0.77, 0.31, 0.5, 0.6});
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"h", {1, 3}}}), "");
  }
  EXPECT_EQ(loop->output("h"), unrolled->output("h"));
  for (const char *name : {"x", "w", "xs"})
    EXPECT_EQ(loop->gradient(name), unrolled->gradient(name)) << name;
}

// x squared as often as the trips say, in a loop that is expanded and in one
// that stays.
TEST_P(FlowCalls, TheSecondDerivativeOfALoop) {
  for (int length : {4, 2000}) {
    SCOPED_TRACE(length);
    std::string text = graph(kX + ", " + kTrips, output("o"),
                             "%o = tandem.scan " + std::to_string(length) +
                                 R"( trips %n carries(%x) inputs() constants() {
      ^bb0(%a: tensor<2xf32>):
        %b = tandem.mul %a, %a : tensor<2xf32>
        tandem.yield %b : tensor<2xf32>
      } : (tensor<i64>, tensor<2xf32>) -> tensor<2xf32>
      return %o : tensor<2xf32>)");
    CompileOptions twice;
    twice.order = 2;
    auto m = compiled(
        {text.c_str(),
         [=](Trace &t) {
           ScanOptions options;
           options.length = length;
           Tensor x = input(t);
           options.trips = t.input("n", {}, DType::I64);
           t.output("o", scan(
                             {x}, {}, {},
                             [](const Tensors &carries, const Tensors &,
                                const Tensors &) -> ScanStep {
                               return {{carries[0] * carries[0]}, {}};
                             },
                             options)
                             .carries[0]);
         }},
        twice);
    ASSERT_TRUE(m);
    m->set("x", {2, -1});
    m->set("n", {2});
    ASSERT_EQ(m->forward(), "");
    EXPECT_NUMBERS(m->output("o"), {16, 1});
    runtime::Tensor ct = tensorOf(DType::F32, {2}, {1, 1}), dx;
    runtime::Argument cotangents[] = {{"o", &ct}};
    runtime::Destination grads[] = {{"x", &dx}};
    runtime::Context graph;
    Status status = m->model.backward(m->context, cotangents, grads,
                                      {.createGraph = true}, &graph);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_NUMBERS(numbersOf(dx), {32, -4});
    runtime::Tensor above = tensorOf(DType::F32, {2}, {1, 10}), ddx, dct;
    runtime::Argument second[] = {{"grad of x", &above}};
    runtime::Destination results[] = {{"x", &ddx}, {"cotangent of o", &dct}};
    status = m->model.backward(graph, second, results);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_NUMBERS(numbersOf(ddx), {48, 120});
    EXPECT_NUMBERS(numbersOf(dct), {32, -40});
  }
}
