//===- CalibrationTest.cpp - measured steps -------------------------------===//
#include "tools/simulate/Calibration.h"
#include "tests/support/Folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tandem::simulate {
namespace {

/// Where the files of these tests are.
const test::Folder &folder() {
  static const test::Folder made;
  return made;
}

Result<Measurement> read(const std::string &text) {
  std::string path = folder() / "measured.json";
  std::ofstream(path) << text;
  return readMeasurement(path);
}

TEST(Calibration, ReadsAMeasuredStep) {
  auto made = read(R"({"step_ms": 50, "ranks": 2, "workload": "gpt",
                       "processors": 2, "artifact": "x.tdm"})");
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(made->stepSeconds, 0.05);
  EXPECT_EQ(made->ranks, 2);
  EXPECT_EQ(made->processors, 2);
  EXPECT_EQ(made->artifact, folder() / "x.tdm");
}

TEST(Calibration, ReadsWhatBenchPrints) {
  auto made = read(R"({"program": "step", "median_ms": 40, "min_ms": 30,
                       "ranks": 4, "exposed_ms": 3})");
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(made->stepSeconds, 0.04);
  EXPECT_EQ(made->ranks, 4);
}

TEST(Calibration, ReadsTimesOfKernels) {
  auto made =
      read(R"({"median_ms": 40, "ranks": 2, "kernels_ms": 30, "kernels": [
      {"class": "contraction", "ms": 12}, {"class": "pointwise", "ms": 5},
      {"class": "window", "ms": 8}, {"class": "reduction", "ms": 5}]})");
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_NEAR(*made->products, 0.02, 1e-12);
  EXPECT_NEAR(*made->others, 0.01, 1e-12);
  EXPECT_FALSE(read(R"({"step_ms": 1, "ranks": 2, "kernels": [{"ms": "1"}]})"));
}

TEST(Calibration, WrongMeasurementsAreRefused) {
  for (auto [text, message] :
       {std::pair(R"({"ranks": 2})", "expected a field 'step_ms'"),
        std::pair(R"({"step_ms": 1})", "expected a field 'ranks'"),
        std::pair(R"({"step_ms": "1", "ranks": 2})",
                  "expected 'step_ms' to be a number of at least 1e-9 and at "
                  "most 1e12, but got \"1\""),
        std::pair(R"({"step_ms": 1e308, "ranks": 2})",
                  "at most 1e12, but got 1e+308"),
        std::pair(R"({"step_ms": 1e999, "ranks": 2})", "expected"),
        std::pair(R"({"step_ms": 1e-320, "ranks": 2})", "at least 1e-9"),
        std::pair(R"({"step_ms": 1, "ranks": 1.5})",
                  "expected 'ranks' to be a whole number"),
        std::pair("[1]", "expected an object such as")}) {
    auto made = read(text);
    EXPECT_EQ(made.status().code(), Code::Usage) << text;
    EXPECT_NE(made.status().message().find(message), std::string::npos)
        << made.status().message();
  }
  EXPECT_FALSE(readMeasurement("/nonexistent/measured.json"));
}

/// A step with 10 ms of kernels, and an exchange of 15 ms beside half of them.
Result<StepResult> stepOf(const Slowness &slow) {
  StepResult step;
  RankTasks tasks(3);
  tasks[0].seconds = tasks[1].seconds = 0.005 * slow.products;
  tasks[2].seconds = 0.015 * slow.links;
  tasks[2].stream = 1;
  tasks[2].after = {0};
  tasks[2].spent = Spent::Exchange;
  step.tasks = {tasks};
  if (Status s = play(step.tasks); !s)
    return s;
  step.seconds = endOf(step.tasks);
  step.ranks.resize(1);
  step.ranks[0].times = timesOf(step.tasks[0], step.seconds);
  return step;
}

// 20 ms by the tables. Kernels are slower until the step takes as long; where
// there is not so much to gain, exchanges are faster, too.
TEST(Calibration, OneTimeScalesKernels) {
  for (double seconds : {0.02, 0.025, 0.05, 0.2, 0.016, 0.004}) {
    Measurement measured;
    measured.stepSeconds = seconds;
    auto slow = slownessOf(measured, stepOf);
    ASSERT_TRUE(slow);
    EXPECT_NEAR(stepOf(*slow)->seconds, seconds, 1e-8);
    EXPECT_EQ(slow->links == 1, seconds >= 0.016) << seconds;
    EXPECT_EQ(slow->products, slow->others);
  }
}

// Each kind of kernels by its own times, and then both, so that the step is
// right: of 10 s, 2 are an exchange's, and the kernels' own times are 1 to 3.
TEST(Calibration, TimesOfKernelsScaleEachKind) {
  auto simulate = [](const Slowness &slow) -> Result<StepResult> {
    StepResult step;
    RankTasks tasks(3);
    tasks[0].seconds = 1 * slow.products;
    tasks[0].isProduct = true;
    tasks[1].seconds = 2 * slow.others;
    tasks[2].seconds = 2 * slow.links;
    tasks[2].spent = Spent::Exchange;
    step.tasks = {tasks};
    if (Status s = play(step.tasks); !s)
      return s;
    step.seconds = endOf(step.tasks);
    step.ranks.resize(1);
    step.ranks[0].times = timesOf(step.tasks[0], step.seconds);
    return step;
  };
  Measurement measured;
  measured.stepSeconds = 10;
  measured.products = 1.5;
  measured.others = 4.5;
  auto slow = slownessOf(measured, simulate);
  ASSERT_TRUE(slow);
  EXPECT_NEAR(slow->products, 2, 1e-6);
  EXPECT_NEAR(slow->others, 3, 1e-6);
  EXPECT_EQ(slow->links, 1);
}

} // namespace
} // namespace tandem::simulate
