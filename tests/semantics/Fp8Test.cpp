//===- Fp8Test.cpp - products of f8 values, and their histories -----------===//
//
// Rows G03 and T01, and B01: of the three histories of a product, the backward
// writes one. What they are and what follows is compared with PyTorch's casts
// (make-fixtures).
//
//===----------------------------------------------------------------------===//
#include "tests/optimizers/Fixtures.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Fp8 : public RowTest {
protected:
  /// The network of make-fixtures, for so many rows.
  static Source network(int64_t rows = 6, DType type = DType::F32) {
    return {nullptr, [rows, type](Trace &t) {
              Tensor x = t.input("x", {rows, 5}, type, {.requiresGrad = true});
              Tensor target = t.input("t", {rows, 3}, type);
              Init one = Init::constant(1);
              Tensor w1 = t.parameter("w1", {8, 5}, one, type);
              Tensor b1 = t.parameter("b1", {8}, one, type);
              Tensor w2 = t.parameter("w2", {3, 8}, one, type);
              Tensor b2 = t.parameter("b2", {3}, one, type);
              Tensor y = linear(relu(linear(x, w1, b1)), w2, b2);
              t.output("y", y);
              t.output("loss", mseLoss(y, target));
            }};
  }
  static CompileOptions options() {
    CompileOptions options;
    options.fp8 = "w:amax_history_len=4,margin=1";
    options.optimizer = "sgd:lr=0.0625";
    return options;
  }
  static void begin(CompiledMachine &m) {
    m.set("w1", drawn(40, 0));
    m.set("b1", drawn(8, 1));
    m.set("w2", drawn(24, 2));
    m.set("b2", drawn(3, 3));
  }
  static void feed(CompiledMachine &m, int step) {
    constexpr int64_t rows = 6;
    Numbers x = drawn(5 * rows, 10 + step);
    for (double &number : x)
      number = step == 6 ? 0 : number * std::ldexp(0.5, step % 3);
    m.set("x", x);
    // A program that infers has none.
    if (m.model.manifest().findValue("t"))
      m.set("t", drawn(3 * rows, 30 + step));
  }
  static void run(CompiledMachine &m, const char *program) {
    const artifact::Program *found = m.model.manifest().findProgram(program);
    ASSERT_TRUE(found) << program;
    std::vector<runtime::Argument> inputs;
    for (const artifact::Slot &slot : found->arguments)
      if (slot.role == artifact::Role::Input)
        inputs.push_back({slot.name, &m.tensors[slot.name]});
    Status status = m.model.run(program, inputs, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  static NamedNumbers variables(CompiledMachine &m) {
    NamedNumbers all;
    for (const artifact::Value &value : m.model.manifest().values)
      if (value.role == artifact::Role::Param ||
          value.role == artifact::Role::State)
        all[value.name] = m.contents(value.name);
    return all;
  }
  static Numbers history(CompiledMachine &m, const std::string &name) {
    return m.contents("fp8." + name);
  }

  static constexpr const char *kParams[] = {"w1", "b1", "w2", "b2"};
  static constexpr const char *kHistories[] = {"fp8.x:w1",    "fp8.w:w1",
                                               "fp8.grad:w1", "fp8.x:w2",
                                               "fp8.w:w2",    "fp8.grad:w2"};
};

} // namespace
TANDEM_WAYS(Fp8, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Fp8, T01_IsWhatPyTorchsCastsGive) {
  auto m = compiled(network(), options());
  ASSERT_TRUE(m);
  begin(*m);
  for (const Fixture &step : fixturesOf("fp8.txt")) {
    SCOPED_TRACE("step " + step.spec);
    feed(*m, std::stoi(step.spec));
    auto wanted = step.numbers.begin();
    auto expect = [&](const Numbers &got, const std::string &name) {
      ASSERT_LE(got.size(), size_t(step.numbers.end() - wanted));
      for (double number : got) {
        double expected = *wanted++;
        EXPECT_NEAR(number, expected, 2e-6 * (1 + std::abs(expected))) << name;
      }
    };
    ASSERT_EQ(m->forward(), "");
    Numbers before = history(*m, "grad:w1");
    // The forward has written two of three.
    EXPECT_EQ(history(*m, "x:w1")[0], double(float(step.numbers[1 + 75 + 30])));
    ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    if (step.spec != "0") {
      EXPECT_NE(history(*m, "grad:w1"), before);
    }
    expect(m->output("loss"), "loss");
    std::vector<runtime::Argument> gradients;
    for (const char *name : kParams) {
      expect(*m->gradient(name), name);
      gradients.emplace_back(name, &m->gradTensors[name]);
    }
    expect(*m->gradient("x"), "x");
    Status status = m->model.update(gradients);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const char *name : kHistories)
      expect(m->contents(name), name);
    for (const char *name : kParams)
      expect(m->contents(name), name);
    EXPECT_EQ(wanted, step.numbers.end());
  }
}

// The step is forward, backward and update, to the bit.
TEST_P(Fp8, B01_TheStepWritesTheSameHistories) {
  auto apart = compiled(network(), options());
  auto whole = compiled(network(), options());
  ASSERT_TRUE(apart && whole);
  begin(*apart);
  begin(*whole);
  for (int step = 0; step < 5; ++step) {
    feed(*apart, step);
    feed(*whole, step);
    ASSERT_EQ(apart->forward(), "");
    ASSERT_EQ(apart->backward({{"loss", {1}}}), "");
    std::vector<runtime::Argument> gradients;
    for (const char *name : kParams)
      gradients.emplace_back(name, &apart->gradTensors[name]);
    ASSERT_TRUE(apart->model.update(gradients).ok());
    run(*whole, "step");
    EXPECT_EQ(variables(*whole), variables(*apart)) << "step " << step;
  }
}

TEST_P(Fp8, B01_TheBackwardsWritesAreInTheManifest) {
  auto m = compiled(network(), options());
  ASSERT_TRUE(m);
  auto updates = [&](const char *program) {
    std::string names;
    for (const artifact::Slot &slot :
         m->model.manifest().findProgram(program)->results)
      if (slot.role == artifact::Role::Update)
        names += slot.name + " ";
    return names;
  };
  EXPECT_EQ(updates("forward"), "fp8.x:w1 fp8.w:w1 fp8.x:w2 fp8.w:w2 ");
  EXPECT_PART(updates("backward"), "fp8.grad:w1 ");
  EXPECT_PART(updates("backward"), "fp8.grad:w2 ");
  EXPECT_EQ(updates("evaluate"), "");
}

// What infers scales by the histories and writes none of them.
TEST_P(Fp8, T01_EvaluatingReadsHistoriesAndWritesNone) {
  auto m = compiled(network(), options());
  ASSERT_TRUE(m);
  begin(*m);
  for (int step = 0; step < 3; ++step) {
    feed(*m, step);
    run(*m, "step");
  }
  CompileOptions alone = options();
  alone.optimizer = "";
  alone.inference = true;
  auto inference = compiled(network(), alone);
  ASSERT_TRUE(inference);
  NamedNumbers before = variables(*m);
  for (const artifact::Value &value : inference->model.manifest().values)
    if (before.count(value.name))
      inference->set(value.name, before[value.name]);
  feed(*m, 4);
  runtime::Tensor y[3];
  auto evaluate = [](CompiledMachine &machine, runtime::Tensor &to) {
    std::vector<runtime::Argument> inputs;
    for (const artifact::Slot &slot :
         machine.model.manifest().findProgram("evaluate")->arguments)
      if (slot.role == artifact::Role::Input)
        inputs.push_back({slot.name, &machine.tensors[slot.name]});
    runtime::Destination outputs[] = {{"y", &to}};
    Status status = machine.model.run("evaluate", inputs, outputs);
    EXPECT_TRUE(status.ok()) << status.message();
  };
  evaluate(*m, y[0]);
  EXPECT_EQ(variables(*m), before);
  feed(*inference, 4);
  evaluate(*inference, y[1]);
  EXPECT_EQ(numbersOf(y[1]), numbersOf(y[0]));
  // Another history is another result.
  m->set("fp8.x:w1", {300, 0, 0, 0});
  evaluate(*m, y[2]);
  EXPECT_NE(numbersOf(y[2]), numbersOf(y[0]));
}

// Each batch is a call: its histories are written, once each.
TEST_P(Fp8, T04_EachBatchOfAnUpdateIsOneCall) {
  CompileOptions options = Fp8::options();
  options.accumulate = true;
  auto m = compiled(network(), options);
  ASSERT_TRUE(m);
  begin(*m);
  for (int step = 0; step < 3; ++step) {
    feed(*m, step);
    run(*m, step < 2 ? "accumulate" : "step");
    for (const char *name : kHistories) {
      Numbers got = m->contents(name);
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(got[i] > 0, i <= step) << name << " " << i;
    }
  }
  // w was the same in all three, x was not.
  Numbers w = history(*m, "w:w1"), x = history(*m, "x:w1");
  EXPECT_EQ(w[0], w[2]);
  EXPECT_NE(x[0], x[2]);
}

// A graph that is kept is differentiated with the numbers of its forward; each
// backward is a call of its own for the history of the gradient.
TEST_P(Fp8, C01_ABackwardThatRunsTwice) {
  auto m = compiled(network(), options());
  ASSERT_TRUE(m);
  begin(*m);
  feed(*m, 0);
  run(*m, "step");
  feed(*m, 1);
  ASSERT_EQ(m->forward(), "");
  Numbers before = history(*m, "grad:w2");
  ASSERT_EQ(m->backward({{"loss", {1}}}, {.retainGraph = true}), "");
  Numbers first = history(*m, "grad:w2"), x = history(*m, "x:w1");
  NamedNumbers gradients = m->gradients;
  EXPECT_EQ(first[1], before[0]);
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  Numbers second = history(*m, "grad:w2");
  EXPECT_EQ(second[0], first[0]);
  EXPECT_EQ(second[1], first[0]);
  EXPECT_EQ(second[2], before[0]);
  EXPECT_EQ(history(*m, "x:w1"), x);
  for (const char *name : kParams)
    for (size_t i = 0; i < gradients[name].size(); ++i)
      EXPECT_NEAR(m->gradients[name][i], gradients[name][i], 0.1) << name;
}

// A weight without a gradient is quantized all the same; where none of a
// product has one, there is no gradient to write down.
TEST_P(Fp8, T12_WeightsThatAreFrozen) {
  for (const char *freeze : {"w2", "1"}) {
    SCOPED_TRACE(freeze);
    CompileOptions options = Fp8::options();
    options.freeze = freeze;
    Source source{nullptr, [](Trace &t) {
                    Tensor x = t.input("x", {6, 5});
                    Tensor target = t.input("t", {6, 3});
                    Tensor w1 = t.parameter("w1", {8, 5}, Init::constant(1));
                    Tensor b1 = t.parameter("b1", {8}, Init::constant(1));
                    Tensor w2 = t.parameter("w2", {3, 8}, Init::constant(1));
                    Tensor b2 = t.parameter("b2", {3}, Init::constant(1));
                    Tensor y = linear(relu(linear(x, w1, b1)), w2, b2);
                    t.output("y", y);
                    t.output("loss", mseLoss(y, target));
                  }};
    auto m = compiled(source, options);
    ASSERT_TRUE(m);
    begin(*m);
    NamedNumbers before = variables(*m);
    for (int step = 0; step < 2; ++step) {
      feed(*m, step);
      run(*m, "step");
    }
    bool isFirst = *freeze == '1';
    EXPECT_EQ(m->contents("w2") == before["w2"], !isFirst);
    EXPECT_EQ(m->contents("w1") == before["w1"], isFirst);
    EXPECT_GT(history(*m, "x:w1")[1], 0);
    EXPECT_GT(history(*m, "w:w2")[1], 0);
    EXPECT_GT(history(*m, "grad:w2")[1], 0);
    EXPECT_EQ(history(*m, "grad:w1")[0] > 0, !isFirst);
  }
}

// Sizes share histories.
TEST_P(Fp8, T13_SizesWriteTheSameHistories) {
  auto m = compiledSizes({network(6), network(2)}, options());
  ASSERT_TRUE(m);
  begin(*m);
  Numbers seen;
  for (int step = 0; step < 3; ++step) {
    int64_t rows = step % 2 ? 2 : 6;
    Numbers x = drawn(5 * rows, step);
    double most = 0;
    for (double number : x)
      most = std::max(most, std::abs(number));
    seen.insert(seen.begin(), most);
    runtime::Tensor in = tensorOf(DType::F32, {rows, 5}, x);
    runtime::Tensor target =
        tensorOf(DType::F32, {rows, 3}, drawn(3 * rows, 30 + step));
    runtime::Argument inputs[] = {{"x", &in}, {"t", &target}};
    Status status = m->model.run("step", inputs, {});
    ASSERT_TRUE(status.ok()) << status.message();
    seen.resize(4);
    EXPECT_NUMBERS(history(*m, "x:w1"), (seen));
    seen.resize(step + 1);
  }
}

// One row, none, and one call of history.
TEST_P(Fp8, T01_OddShapes) {
  CompileOptions options = Fp8::options();
  options.fp8 = "w:amax_history_len=1";
  for (int64_t rows : {1, 0}) {
    SCOPED_TRACE(rows);
    Source source{nullptr, [rows](Trace &t) {
                    Tensor x = t.input("x", {rows, 5});
                    Tensor w = t.parameter("w", {1, 5}, Init::constant(1));
                    t.output("loss", sum(linear(x, w)));
                  }};
    auto m = compiled(source, options);
    ASSERT_TRUE(m);
    for (int step = 0; step < 2; ++step) {
      m->set("x", Numbers(5 * rows, 3));
      ASSERT_EQ(m->forward(), "");
      EXPECT_NUMBERS(m->output("loss"), {15.0 * rows});
      ASSERT_EQ(m->backward({{"loss", {1}}}), "");
      EXPECT_NUMBERS(m->gradient("w"), (Numbers(5, 3.0 * rows)));
      EXPECT_NUMBERS(history(*m, "x:w"), {rows ? 3.0 : 0});
      EXPECT_NUMBERS(history(*m, "w:w"), {1});
      EXPECT_NUMBERS(history(*m, "grad:w"), {rows ? 1.0 : 0});
    }
  }
}

// What is too large for its scale is clipped; what is infinite or NaN stays so,
// and does not stand in the history.
TEST_P(Fp8, T03_LargeNumbersAreClippedAndOthersStay) {
  CompileOptions options = Fp8::options();
  options.fp8 = "w:amax_history_len=2";
  Source source{nullptr, [](Trace &t) {
                  Tensor x = t.input("x", {1, 2});
                  Tensor w = t.parameter("w", {1, 2}, Init::constant(1));
                  t.output("loss", sum(linear(x, w)));
                }};
  auto m = compiled(source, options);
  ASSERT_TRUE(m);
  auto call = [&](Numbers x, double dy) {
    m->set("x", x);
    EXPECT_EQ(m->forward(), "");
    EXPECT_EQ(m->backward({{"loss", {dy}}}), "");
    return m->output("loss")[0];
  };
  EXPECT_EQ(call({1000, 1}, 1e5), 449);
  EXPECT_NUMBERS(m->gradient("w"), {448.0 * 57344, 57344});
  EXPECT_NUMBERS(history(*m, "x:w"), {1000, 0});
  EXPECT_NUMBERS(history(*m, "grad:w"), {1e5, 0});
  EXPECT_NEAR(call({1000, 1}, 1e5), 1001, 0.03);
  EXPECT_NEAR((*m->gradient("w"))[0], 1e8, 10);
  double infinite = INFINITY;
  EXPECT_TRUE(std::isnan(call({infinite, 1}, infinite)));
  EXPECT_FALSE(std::isfinite((*m->gradient("w"))[0]));
  EXPECT_FALSE(std::isfinite((*m->gradient("w"))[1]));
  EXPECT_TRUE(std::isnan(call({1, 1}, NAN) - 2) == false);
  EXPECT_TRUE(std::isnan((*m->gradient("w"))[1]));
  EXPECT_NUMBERS(history(*m, "x:w"), {1, 1000});
  EXPECT_NUMBERS(history(*m, "grad:w"), {1e5, 1e5});
  // Not even one of zeros divides by 0.
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(call({0, 0}, 0), 0);
  EXPECT_NUMBERS(history(*m, "x:w"), {0, 0});
  EXPECT_NUMBERS(m->gradient("w"), {0, 0});
  EXPECT_EQ(call({3, 1}, 2), 4);
  EXPECT_NUMBERS(m->gradient("w"), {6, 2});
  // Numbers whose scale is the largest or the least.
  for (double x : {1e-44, 1e38})
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(std::isfinite(call({x, x}, 1))) << x;
}

// An overflow skips the update and halves the scale of the loss, and the
// histories of gradients have nothing of it.
TEST_P(Fp8, G07_ALossThatIsScaledIsSkippedWhereGradientsAreInfinite) {
  CompileOptions options = Fp8::options();
  options.amp = "f16";
  options.lossScale = "dynamic:init=8e37";
  auto m = compiled(network(), options);
  ASSERT_TRUE(m);
  begin(*m);
  NamedNumbers before = variables(*m);
  feed(*m, 0);
  m->set("t", Numbers(18, 1e4));
  run(*m, "step");
  EXPECT_EQ(m->contents("w1"), before["w1"]);
  EXPECT_EQ(m->contents("sgd.skipped"), Numbers{1});
  for (double number : history(*m, "grad:w2"))
    EXPECT_EQ(number, 0);
  EXPECT_GT(history(*m, "x:w2")[0], 0);
}

// With mixed precision other ops are low, and these are as they are. Products
// of parameters of low types are of f8 values, too.
TEST_P(Fp8, T01_BesideMixedPrecision) {
  for (const char *amp : {"bf16", "f16"}) {
    SCOPED_TRACE(amp);
    CompileOptions options = Fp8::options();
    options.fp8 = "w1:amax_history_len=4";
    options.amp = amp;
    std::string joint = printed(network(), "joint", options);
    EXPECT_PART(joint, "tensor<8x5xf8E4M3FN>");
    EXPECT_PART(joint, "tensor<6x8xf8E5M2>");
    EXPECT_EQ(count(joint, "tensor<3x8xf8"), 0);
    EXPECT_PART(joint, *amp == 'b' ? "tensor<3x8xbf16>" : "tensor<3x8xf16>");
  }
  auto m = compiled(network(6, DType::BF16), options());
  ASSERT_TRUE(m);
  begin(*m);
  for (int step = 0; step < 3; ++step) {
    feed(*m, step);
    run(*m, "step");
  }
  for (const char *name : kHistories)
    EXPECT_GT(m->contents(name)[2], 0) << name;
}

// What the backward reads of both factors is of f8.
TEST_P(Fp8, C05_SavesBytes) {
  std::string module = printed(network(64), "partition", options());
  std::string forward = module.substr(module.find("func.func @forward"));
  forward = forward.substr(0, forward.find(") attributes"));
  EXPECT_PART(forward,
              "tensor<64x8xf8E4M3FN> {tandem.role = #tandem.role<saved");
  EXPECT_EQ(
      count(forward, "tensor<64x8xf32> {tandem.role = #tandem.role<saved"), 0);
}

TEST_P(Fp8, T01_ProductsOfOneWeight) {
  Source source{nullptr, [](Trace &t) {
                  Tensor x = t.input("x", {2, 3, 4});
                  Tensor w = t.parameter("w", {4, 4}, Init::constant(0.5));
                  Tensor y = matmul(matmul(x, w), w.transpose(0, 1));
                  t.output("loss", sum(y));
                }};
  CompileOptions options;
  options.fp8 = "w:amax_history_len=2";
  auto m = compiled(source, options);
  ASSERT_TRUE(m);
  m->set("x", Numbers(24, 2));
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("loss"), {192});
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  EXPECT_NUMBERS(m->gradient("w"), (Numbers(16, 48)));
  EXPECT_NUMBERS(history(*m, "x:w"), {2, 0});
  EXPECT_NUMBERS(history(*m, "x.1:w"), {4, 0});
  EXPECT_NUMBERS(history(*m, "grad:w"), {2, 0});
  EXPECT_NUMBERS(history(*m, "grad.1:w"), {1, 0});
}

TEST_P(Fp8, T01_WhatHasNoProductOfF8) {
  auto message = [&](const std::string &fp8, const Source &source) {
    CompileOptions options;
    options.fp8 = fp8;
    return errorOf(source, options);
  };
  EXPECT_PART(message("b", network()),
              "--fp8: 'b' matches no weight that is the right factor of a "
              "product; there are 'w1', 'w2'");
  EXPECT_PART(message("w", network(6, DType::F64)),
              "--fp8: a product of 'w1' is of f64: expected the expression to "
              "leave it out");
  Source taken{nullptr, [](Trace &t) {
                 Tensor x = t.input("x", {2, 4});
                 Tensor w = t.parameter("w", {4, 4}, Init::constant(0.5));
                 t.state("fp8.x:w", {1}, Init::constant(0));
                 t.output("loss", sum(matmul(x, w)));
               }};
  EXPECT_PART(message("w", taken),
              "the model has a value 'fp8.x:w', which --fp8 would make");
}
