//===- NoiseTest.cpp - gradients with noise, and centralized --------------===//
#include "compiler/CheckOptions.h"
#include "tests/optimizers/Fixtures.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Noise : public RowTest {
protected:
  static CompileOptions withNoise(const std::string &noise,
                                  const std::string &clip = "") {
    CompileOptions options;
    options.optimizer = "sgd:lr=1";
    options.gradientNoise = noise;
    options.clip = clip;
    return options;
  }

  /// What an update took from parameters whose rate is 1.
  static Numbers less(const Numbers &from, const Numbers &to) {
    Numbers left(from);
    for (size_t i = 0; i < left.size(); ++i)
      left[i] -= to[i];
    return left;
  }
};

/// A matrix and a vector that are drawn on, with gradients of one.
Source large() {
  return {nullptr, [](Trace &t) {
            Tensor w = t.parameter("w", {64, 96}, Init::constant(0));
            Tensor v = t.parameter("v", {96}, Init::constant(0));
            t.output("loss", sum(w) + sum(v));
          }};
}

double meanOf(const Numbers &numbers, int power) {
  double sum = 0;
  for (double x : numbers)
    sum += std::pow(x, power);
  return sum / static_cast<double>(numbers.size());
}

/// The parameters of `large()` behind an update with gradients of one.
Numbers moved(CompiledMachine &m, double gradient = 1) {
  runtime::Tensor w = *tensorOf(DType::F32, {64, 96}, Numbers(64 * 96, 1))
                           .copyTo(m.model.device());
  runtime::Tensor v = *tensorOf(DType::F32, {96}, Numbers(96, gradient))
                           .copyTo(m.model.device());
  std::vector<runtime::Argument> arguments{{"w", &w}, {"v", &v}};
  Status status = m.model.update(arguments);
  EXPECT_TRUE(status.ok()) << status.message();
  Numbers all = m.contents("w"), more = m.contents("v");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

} // namespace
TANDEM_WAYS(Noise, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

// Mean 0, the variance of the formula, no two numbers alike, and anew in each
// update.
TEST_P(Noise, HasTheVarianceOfTheUpdate) {
  auto m = compiled(large(), withNoise("0.04,gamma=0.5"));
  ASSERT_TRUE(m);
  Numbers before(64 * 96 + 96), last;
  for (int update = 0; update < 4; ++update) {
    Numbers now = moved(*m);
    Numbers noise = less(before, now); // lr is 1: the gradients
    for (double &x : noise)
      x -= 1;
    double variance = 0.04 / std::sqrt(1 + update);
    EXPECT_LT(std::abs(meanOf(noise, 1)), 4 * std::sqrt(variance / 6240));
    EXPECT_NEAR(meanOf(noise, 2), variance, 0.08 * variance) << update;
    EXPECT_NEAR(meanOf(noise, 4), 3 * variance * variance,
                0.3 * variance * variance)
        << "not normal";
    double with = 0;
    for (size_t i = 0; i < last.size(); ++i)
      with += noise[i] * last[i] / 6240;
    EXPECT_LT(std::abs(with), 0.004) << "follows from that of the last one";
    // The vector's are not those of the matrix' first row.
    for (int i = 0; i < 96; ++i)
      EXPECT_NE(noise[i], noise[64 * 96 + i]);
    EXPECT_EQ(m->contents("sgd.noise")[1], update + 1);
    before = now;
    last = noise;
  }
}

// Clipping does not see it, and an update that is left out draws none.
TEST_P(Noise, IsAddedBehindClipping) {
  auto m = compiled(large(), withNoise("1e-8", "norm:1e-3"));
  ASSERT_TRUE(m);
  Numbers noise = moved(*m);
  EXPECT_GT(meanOf(noise, 2), 0.8e-8);
  EXPECT_LT(meanOf(noise, 2), 1.2e-8);
  Numbers state = m->contents("sgd.noise");
  EXPECT_EQ(moved(*m, std::numeric_limits<double>::infinity()), noise);
  EXPECT_EQ(m->contents("sgd.noise"), state);
}

TEST_P(Noise, FollowsFromTheSeed) {
  auto m = compiled(large(), withNoise("1"));
  auto n = compiled(large(), withNoise("1"));
  ASSERT_TRUE(m && n);
  EXPECT_EQ(moved(*m), moved(*n));
  n->set("sgd.noise", {7, 1});
  EXPECT_NE(moved(*m), moved(*n));
}

// Each row of a gradient, and each slice of one with more dimensions, has the
// mean 0; vectors and numbers stay.
TEST_P(Noise, CentralizedGradientsHaveNoMean) {
  for (const char *clip : {"", "value:0.5"}) {
    CompileOptions options;
    options.optimizer = "sgd:lr=1";
    options.clip = clip;
    auto plain = compiled(Steps::source(DType::F32), options);
    options.centralize = true;
    auto m = compiled(Steps::source(DType::F32), options);
    ASSERT_TRUE(m && plain);
    Steps run(*m, DType::F32), other(*plain, DType::F32);
    run.update();
    other.update();
    for (int p = 0; p < Steps::kParams; ++p) {
      SCOPED_TRACE(Steps::name(p) + clip);
      Numbers before = drawn(Steps::elements(p), p);
      Numbers gradient = less(before, plain->contents(Steps::name(p)));
      Numbers centralized = less(before, m->contents(Steps::name(p)));
      const Shape &shape = Steps::shape(p);
      if (shape.size() < 2) {
        EXPECT_EQ(centralized, gradient);
        continue;
      }
      size_t each = gradient.size() / shape[0];
      for (size_t i = 0; i < gradient.size(); ++i) {
        double mean = 0;
        for (size_t j = 0; j < each; ++j)
          mean += gradient[i / each * each + j] / static_cast<double>(each);
        EXPECT_NEAR(centralized[i], gradient[i] - mean, 1e-6);
      }
    }
  }
}

TEST(NoiseOptions, SayWhatIsWrong) {
  for (const char *wrong : {"", "0", "-1", "x", "nan", "1,gama=1", "1,gamma=-1",
                            "1,gamma=1,gamma=2", "1e99"}) {
    CompileOptions options;
    options.optimizer = "sgd";
    options.gradientNoise = wrong;
    EXPECT_EQ(checkOptions(options).ok(), !*wrong) << wrong;
    if (*wrong)
      EXPECT_NE(checkOptions(options).message().find(
                    "--gradient-noise: expected a variance"),
                std::string::npos)
          << checkOptions(options).message();
  }
  CompileOptions options;
  options.centralize = true;
  EXPECT_FALSE(checkOptions(options).ok());
}
