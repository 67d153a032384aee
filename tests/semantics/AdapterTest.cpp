//===- AdapterTest.cpp - low-rank adapters --------------------------------===//
//
// Row T12: what is trained beside frozen weights.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Regression.h"

using namespace tandem;
using namespace tandem::test;

namespace {

class Adapters : public RowTest {
protected:
  static Source network() {
    return {nullptr, [](Trace &t) {
              Tensor x = t.input("x", {4, 3});
              Tensor w = t.parameter("l.weight", {3, 3}, Init::uniform(-1, 1));
              Tensor b = t.parameter("l.bias", {3}, Init::uniform(-1, 1));
              Tensor v = t.parameter("v", {3, 3}, Init::uniform(-1, 1));
              Tensor y = matmul(relu(linear(x, w, b)), v);
              t.output("y", y);
              t.output("loss", mean(y * y));
            }};
  }
  static CompileOptions options() {
    CompileOptions options;
    options.optimizer = "adamw:lr=0.05";
    options.lora = "weight|v:rank=2,alpha=3";
    return options;
  }
};

} // namespace
TANDEM_WAYS(Adapters, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Adapters, T12_BaseWeightsKeepTheirBytesAndHaveNoGradients) {
  auto m = compiled(network(), options());
  ASSERT_TRUE(m);
  // Neither gradients nor states of the optimizer, of weights and biases.
  for (const artifact::Value &value : m->model.manifest().values)
    for (const char *base : {"l.weight", "l.bias", "v"}) {
      EXPECT_NE(value.name, std::string("adamw.m:") + base);
      if (value.name == base) {
        EXPECT_FALSE(value.requiresGrad) << base;
      }
    }
  NamedNumbers before;
  for (const char *base : {"l.weight", "l.bias", "v"})
    before[base] = m->contents(base);
  Numbers a = m->contents("l.lora_A.weight");
  for (int i = 0; i < 5; ++i)
    runOnRows(*m, "step", rowsOf(4 * i, 4));
  for (const char *base : {"l.weight", "l.bias", "v"})
    EXPECT_EQ(m->contents(base), before[base]) << base;
  EXPECT_NE(m->contents("l.lora_A.weight"), a);
  EXPECT_NE(m->contents("v.lora_B"), Numbers(6, 0.0));
  EXPECT_NUMBERS(m->contents("l.lora_scale"), {1.5});
  EXPECT_NUMBERS(m->contents("v.lora_scale.fan_in_fan_out"), {1.5});
}

// A new head is trained whole beside the adapters of the rest, and has none.
TEST_P(Adapters, T12_WhatModulesToSaveNamesIsTrainedWhole) {
  CompileOptions options = Adapters::options();
  options.lora = "weight|v:rank=2,alpha=3,modules_to_save=^v$|bias";
  auto m = compiled(network(), options);
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->model.manifest().findValue("v.lora_A"));
  EXPECT_TRUE(m->model.manifest().findValue("adamw.m:v"));
  NamedNumbers before;
  for (const char *name : {"l.weight", "l.bias", "v", "l.lora_A.weight"})
    before[name] = m->contents(name);
  for (int i = 0; i < 5; ++i)
    runOnRows(*m, "step", rowsOf(4 * i, 4));
  EXPECT_EQ(m->contents("l.weight"), before["l.weight"]);
  for (const char *name : {"l.bias", "v", "l.lora_A.weight"})
    EXPECT_NE(m->contents(name), before[name]) << name;
}

// Before it is trained it is the model; afterwards the model with sums for
// weights.
TEST_P(Adapters, T12_TheSameAsItsWeightsWithTheAdaptersAdded) {
  auto m = compiled(network(), options());
  CompileOptions plain = options();
  plain.lora = "";
  auto merged = compiled(network(), plain);
  ASSERT_TRUE(m && merged);
  auto outputsOf = [](CompiledMachine &machine) {
    machine.set("x", rowsOf(3, 4));
    EXPECT_EQ(machine.forward(), "");
    return machine.outputs;
  };
  for (const char *base : {"l.weight", "l.bias", "v"})
    merged->set(base, m->contents(base));
  EXPECT_EQ(outputsOf(*m), outputsOf(*merged));
  for (int i = 0; i < 5; ++i)
    runOnRows(*m, "step", rowsOf(4 * i, 4));
  auto add = [&](const char *weight, const char *first, const char *second,
                 bool fanInFanOut) {
    Numbers w = m->contents(weight), a = m->contents(first),
            b = m->contents(second);
    for (int o = 0; o < 3; ++o)
      for (int i = 0; i < 3; ++i)
        for (int r = 0; r < 2; ++r)
          w[fanInFanOut ? i * 3 + o : o * 3 + i] +=
              1.5 * b[o * 2 + r] * a[r * 3 + i];
    merged->set(weight, w);
  };
  add("l.weight", "l.lora_A.weight", "l.lora_B.weight", false);
  add("v", "v.lora_A", "v.lora_B", true);
  NamedNumbers got = outputsOf(*m), expected = outputsOf(*merged);
  for (const auto &[name, numbers] : expected)
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], numbers[i], 1e-5) << name;
}
