//===- CalibrationTest.cpp - measured steps -------------------------------===//
#include "tools/simulate/Calibration.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tandem::simulate {
namespace {

Result<Measurement> read(const std::string &text) {
  std::string path = testing::TempDir() + "tandem-measured.json";
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
  EXPECT_EQ(made->artifact, testing::TempDir() + "x.tdm");
}

TEST(Calibration, ReadsWhatBenchPrints) {
  auto made = read(R"({"program": "step", "median_ms": 40, "min_ms": 30,
                       "ranks": 4, "exposed_ms": 3})");
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(made->stepSeconds, 0.04);
  EXPECT_EQ(made->ranks, 4);
}

TEST(Calibration, WrongMeasurementsAreRefused) {
  for (auto [text, message] :
       {std::pair(R"({"ranks": 2})", "expected a field 'step_ms'"),
        std::pair(R"({"step_ms": 1})", "expected a field 'ranks'"),
        std::pair(R"({"step_ms": "1", "ranks": 2})",
                  "expected 'step_ms' to be a number above 0, but got \"1\""),
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

// Kernels by their own times, communication by what is left.
TEST(Calibration, TimesOfKernelsScaleEachKind) {
  StepResult simulated;
  simulated.seconds = 6;
  RankTasks tasks(3);
  tasks[0].seconds = 1;
  tasks[0].isProduct = true;
  tasks[1].seconds = 3;
  tasks[2].seconds = 2;
  tasks[2].spent = Spent::Exchange;
  simulated.tasks = {tasks};
  simulated.ranks.resize(1);
  simulated.ranks[0].times.exposed = 2;
  Measurement measured;
  measured.stepSeconds = 12;
  measured.products = 2;
  measured.others = 9;
  auto slow = slownessOf(measured, [&](const Slowness &) {
    return Result<StepResult>(simulated);
  });
  ASSERT_TRUE(slow);
  EXPECT_DOUBLE_EQ(slow->products, 2);
  EXPECT_DOUBLE_EQ(slow->others, 3);
  EXPECT_DOUBLE_EQ(slow->links, 0.5);
}

} // namespace
} // namespace tandem::simulate
