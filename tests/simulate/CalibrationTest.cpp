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

// Everything is slower by what the step is.
TEST(Calibration, OneTimeScalesAll) {
  StepResult simulated;
  simulated.seconds = 0.025;
  Measurement measured;
  measured.stepSeconds = 0.05;
  Slowness slow = slownessOf(measured, simulated);
  EXPECT_DOUBLE_EQ(slow.products, 2);
  EXPECT_DOUBLE_EQ(slow.others, 2);
  EXPECT_DOUBLE_EQ(slow.links, 2);
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
  Slowness slow = slownessOf(measured, simulated);
  EXPECT_DOUBLE_EQ(slow.products, 2);
  EXPECT_DOUBLE_EQ(slow.others, 3);
  EXPECT_DOUBLE_EQ(slow.links, 0.5);
}

} // namespace
} // namespace tandem::simulate
