//===- QuantizedTest.cpp - optimizer states of 8 bits: row T16 ------------===//
//
// The numbers of the map are made here as they are published: a list of the
// middles of equal parts, sorted.
//
//===----------------------------------------------------------------------===//
#include "tests/optimizers/Fixtures.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Quantized : public RowTest {
protected:
  static CompileOptions with(const std::string &optimizer) {
    CompileOptions options;
    options.optimizer = optimizer;
    return options;
  }

  static Source source(int64_t elements) {
    return {nullptr, [elements](Trace &t) {
              t.output("loss",
                       sum(t.parameter("w", {elements}, Init::constant(1))));
            }};
  }

  static void update(CompiledMachine &m, const Numbers &gradient) {
    auto size = static_cast<int64_t>(gradient.size());
    runtime::Tensor tensor =
        *tensorOf(DType::F32, {size}, gradient).copyTo(m.model.device());
    runtime::Argument arguments[] = {{"w", &tensor}};
    Status status = m.model.update(arguments);
    ASSERT_TRUE(status.ok()) << status.message();
  }
};

/// The numbers above 0 of the map, in their order.
Numbers dynamicMap(bool isSigned) {
  Numbers numbers;
  for (int i = 0; i < 7; ++i) {
    int parts = 1 << (isSigned ? i : i + 1);
    for (int k = 0; k < parts; ++k) {
      double low = 0.1 + 0.9 * k / parts, high = 0.1 + 0.9 * (k + 1) / parts;
      numbers.push_back(std::pow(10, i - 6) * (low + high) / 2);
    }
  }
  numbers.push_back(1);
  return numbers;
}

/// What a code says of the map.
double numberOf(double code, bool isSigned) {
  static const Numbers maps[] = {dynamicMap(false), dynamicMap(true)};
  const Numbers &map = maps[isSigned];
  if (isSigned && code == -128)
    return 1;
  if (code == 0)
    return 0;
  double number = map.at(size_t(std::abs(code)) - 1);
  return code < 0 ? -number : number;
}

/// The nearest number of the map.
double nearest(double x, bool isSigned) {
  Numbers numbers = dynamicMap(isSigned);
  size_t count = numbers.size();
  numbers.push_back(0);
  // There is no -1.
  for (size_t i = 0; isSigned && i + 1 < count; ++i)
    numbers.push_back(-numbers[i]);
  return *std::ranges::min_element(numbers, [&](double a, double b) {
    return std::abs(a - x) < std::abs(b - x);
  });
}

} // namespace
TANDEM_WAYS(Quantized, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Quantized, T16_IsThePublishedOneOver100Steps) {
  for (const Fixture &fixture : fixturesOf("quantized.txt")) {
    SCOPED_TRACE(fixture.spec);
    auto m = compiled(Steps::source(DType::F32), with(fixture.spec));
    ASSERT_TRUE(m);
    Steps run(*m, DType::F32);
    auto wanted = fixture.numbers.begin();
    for (int steps = isCuda() ? 10 : 100; run.count < steps;) {
      run.update();
      if (run.count != 1 && run.count != 10 && run.count != 100)
        continue;
      double worst = 0;
      for (double value : run.values()) {
        ASSERT_FALSE(std::isnan(value)); // no maximum has it
        worst = std::max(worst, std::abs(value - *wanted++));
      }
      EXPECT_LE(worst, 1e-4) << "after " << run.count << " steps";
    }
  }
}

TEST_P(Quantized, T16_IsDeterministic) {
  auto states = [&] {
    std::vector<Numbers> all;
    auto m = compiled(Steps::source(DType::F32),
                      with("adamw8bit:block=4,min_size=2"));
    if (!m)
      return all;
    Steps run(*m, DType::F32);
    for (int i = 0; i < 20; ++i)
      run.update();
    for (const artifact::Value &value : m->model.manifest().values)
      if (value.role == artifact::Role::Param ||
          value.role == artifact::Role::State)
        all.push_back(m->contents(value.name));
    return all;
  };
  std::vector<Numbers> once = states();
  EXPECT_GT(once.size(), 20u);
  EXPECT_EQ(once, states());
}

// Each element is the nearest number of its block's map: also where one of them
// is a million times larger than the rest.
TEST_P(Quantized, T16_BlocksOfZerosAndOfOneOutlier) {
  auto m = compiled(source(11), with("adamw8bit:lr=0.5,beta1=0.5,beta2=0.75,"
                                     "block=4,min_size=2"));
  ASSERT_TRUE(m);
  Numbers gradient = {0,    0,     0,     0,    // zeros
                      3e-3, -8e-6, -1e-3, 1000, // an outlier
                      -5,   0.25,  -2e-4};      // not filled
  update(*m, gradient);
  struct {
    const char *name;
    bool isSigned;
    std::function<double(double)> mean;
  } states[] = {{"m8", true, [](double g) { return 0.5 * g; }},
                {"v8", false, [](double g) { return 0.25 * g * g; }}};
  for (const auto &state : states) {
    SCOPED_TRACE(state.name);
    std::string name = std::string("adamw8bit.") + state.name;
    Numbers codes = m->contents(name + ":w"),
            scales = m->contents(name + "_max:w");
    ASSERT_EQ(codes.size(), 12u);
    ASSERT_EQ(scales.size(), 3u);
    EXPECT_EQ(scales[0], 0);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(codes[i], 0) << i;
    EXPECT_EQ(codes[11], 0);
    for (int block : {1, 2}) {
      double most = 0;
      for (int i = 4 * block; i < std::min(4 * block + 4, 11); ++i)
        most = std::max(most, std::abs(state.mean(gradient[i])));
      EXPECT_NEAR(scales[block], most, 1e-6 * most);
      for (int i = 4 * block; i < std::min(4 * block + 4, 11); ++i)
        EXPECT_DOUBLE_EQ(
            numberOf(codes[i], state.isSigned),
            nearest(state.mean(gradient[i]) / most, state.isSigned))
            << i;
    }
  }
  // The outlier is exact, and what is nothing beside it stays what it is.
  EXPECT_EQ(m->contents("adamw8bit.m8:w")[7], -128);
  EXPECT_EQ(m->contents("adamw8bit.v8:w")[7], 255);
  EXPECT_NE(m->contents("adamw8bit.m8:w")[4], 0);
  // Zeros move nothing but by the decay.
  EXPECT_EQ(m->contents("w")[0], m->contents("w")[3]);
  EXPECT_NUMBERS(Numbers{m->contents("w")[0]}, {1 - 0.5 * 0.01});
}

// A large parameter has two bytes an element, a small one its states in f32.
TEST_P(Quantized, T16_StatesAreBytes) {
  auto m = compiled(source(10000), with("adamw8bit"));
  auto small = compiled(source(100), with("adamw8bit"));
  ASSERT_TRUE(m && small);
  auto value = [&](CompiledMachine &of, const char *name) {
    return of.model.manifest().findValue(name);
  };
  ASSERT_TRUE(value(*m, "adamw8bit.m8:w") && value(*m, "adamw8bit.v8:w"));
  EXPECT_EQ(value(*m, "adamw8bit.m8:w")->dtype, DType::I8);
  EXPECT_EQ(value(*m, "adamw8bit.v8:w")->dtype, DType::U8);
  EXPECT_EQ(value(*m, "adamw8bit.v8:w")->shape, (Shape{40, 256}));
  EXPECT_EQ(value(*m, "adamw8bit.v8_max:w")->shape, (Shape{40}));
  EXPECT_FALSE(value(*m, "adamw8bit.m:w"));
  EXPECT_FALSE(value(*small, "adamw8bit.m8:w"));
  EXPECT_EQ(value(*small, "adamw8bit.m:w")->dtype, DType::F32);
  ASSERT_TRUE(m->model.manifest().stepMemory);
  EXPECT_LT(m->model.manifest().stepMemory->states, 21000);
}
