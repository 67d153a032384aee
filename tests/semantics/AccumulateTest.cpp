//===- AccumulateTest.cpp - one update for several batches ----------------===//
//
// Row T04, and of T03 what belongs to it: `accumulate` adds a batch's gradients
// to sums, and the `step` after it updates by the mean, which is that of all
// rows. What the forward draws and counts, it draws and counts for each batch.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Regression.h"

#include <cmath>
#include <cstring>

using namespace tandem;
using namespace tandem::test;

namespace {

class Accumulate : public RowTest {};

} // namespace
TANDEM_WAYS(Accumulate, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Accumulate, T04_IsTheBatchOfAllRows) {
  for (const char *optimizer :
       {"sgd:lr=0.1,weight_decay=0.1", "momentum:lr=0.1", "adamw:lr=0.1"})
    for (const char *clip : {"", "norm:0.3", "value:0.2"})
      // The divisor is the number of batches that there were.
      for (int batches : {3, 1}) {
        SCOPED_TRACE(std::string(optimizer) + clip);
        CompileOptions options;
        options.optimizer = optimizer;
        options.clip = clip;
        auto whole = compiled(regression(2 * batches), options);
        options.accumulate = true;
        auto m = compiled(regression(2), options);
        ASSERT_TRUE(whole && m);
        for (int update = 0; update < 2; ++update) {
          int first = update * 2 * batches;
          for (int i = 0; i < batches; ++i)
            runOnRows(*m, i + 1 < batches ? "accumulate" : "step",
                      rowsOf(first + 2 * i, 2));
          runOnRows(*whole, "step", rowsOf(first, 2 * batches));
          for (const char *name : {"w", "b"}) {
            Numbers got = m->contents(name), wanted = whole->contents(name);
            ASSERT_EQ(got.size(), wanted.size());
            for (size_t i = 0; i < got.size(); ++i)
              EXPECT_NEAR(got[i], wanted[i], 2e-6) << name;
          }
          std::string prefix(optimizer, std::strcspn(optimizer, ":"));
          EXPECT_NUMBERS(m->contents(prefix + ".sum:w"), {0, 0, 0});
          EXPECT_NUMBERS(m->contents(prefix + ".summed:b"), {0});
          if (*clip == 'n')
            EXPECT_NEAR(m->contents(prefix + ".grad_norm").at(0),
                        whole->contents(prefix + ".grad_norm").at(0), 1e-6);
        }
      }
}

// Parameters do not move before the step.
TEST_P(Accumulate, T04_AddsUpAndMovesNothing) {
  CompileOptions options;
  options.optimizer = "adamw:lr=0.1";
  options.accumulate = true;
  auto m = compiled(regression(2), options);
  ASSERT_TRUE(m);
  Numbers w = m->contents("w");
  runOnRows(*m, "accumulate", {1, 0, 0, 0, 1, 0});
  EXPECT_EQ(m->contents("w"), w);
  EXPECT_NUMBERS(m->contents("adamw.step:w"), {0});
  // 2 / rows * sum of y x, y = 0.75.
  EXPECT_NUMBERS(m->contents("adamw.sum:w"), {0.75, 0.75, 0});
  runOnRows(*m, "accumulate", {1, 0, 0, 0, 1, 0});
  EXPECT_NUMBERS(m->contents("adamw.sum:w"), {1.5, 1.5, 0});
  EXPECT_NUMBERS(m->contents("adamw.summed:w"), {2});
}

// An update that is left out uses up what was added all the same.
TEST_P(Accumulate, T03_T04_ASkippedUpdateClearsTheSums) {
  CompileOptions options;
  options.optimizer = "sgd:lr=0.1";
  options.clip = "norm:1";
  options.accumulate = true;
  auto m = compiled(regression(2), options);
  ASSERT_TRUE(m);
  Numbers w = m->contents("w");
  runOnRows(*m, "accumulate", {INFINITY, 0, 0, 0, 1, 0});
  runOnRows(*m, "step", {1, 0, 0, 0, 1, 0});
  EXPECT_EQ(m->contents("w"), w);
  EXPECT_NUMBERS(m->contents("sgd.skipped"), {1});
  EXPECT_NUMBERS(m->contents("sgd.sum:w"), {0, 0, 0});
  runOnRows(*m, "step", {1, 0, 0, 0, 1, 0});
  EXPECT_NE(m->contents("w"), w);
}

// A parameter whose gradient is undefined keeps what was added up for it.
TEST_P(Accumulate, T04_T06_AnUndefinedGradientKeepsItsSum) {
  CompileOptions options;
  options.optimizer = "sgd:lr=0.1";
  options.accumulate = true;
  auto m = compiled(regression(2), options);
  ASSERT_TRUE(m);
  runOnRows(*m, "accumulate", {1, 0, 0, 0, 1, 0});
  Numbers w = m->contents("w"), b = m->contents("b");
  runtime::Tensor none;
  runtime::Tensor one =
      *tensorOf(DType::F32, {1}, {0.5}).copyTo(m->model.device());
  runtime::Argument gradients[] = {{"w", &none}, {"b", &one}};
  Status status = m->model.update(gradients);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(m->contents("w"), w);
  EXPECT_NUMBERS(m->contents("sgd.sum:w"), {0.75, 0.75, 0});
  EXPECT_NUMBERS(m->contents("sgd.summed:w"), {1});
  EXPECT_NUMBERS(m->contents("sgd.summed:b"), {0});
  EXPECT_NE(m->contents("b"), b);
}

// Running statistics and random bits are of each batch.
TEST_P(Accumulate, T04_StatesOfTheForwardAreOfEachBatch) {
  Source source{nullptr, [](Trace &t) {
                  Tensor x = t.input("x", {4, 3});
                  Tensor w = t.parameter("w", {3, 3}, Init::constant(0.5));
                  Tensor count = t.state("count", {1}, Init::constant(0));
                  count.add_(1.0);
                  Tensor y = dropout(linear(x, w), 0.5);
                  t.output("loss", mean(y * y));
                }};
  CompileOptions options;
  options.optimizer = "sgd:lr=0.1";
  options.accumulate = true;
  auto m = compiled(source, options);
  ASSERT_TRUE(m);
  ASSERT_TRUE(m->model.initialize(7).ok());
  Numbers rows(12, 1.0);
  runOnRows(*m, "accumulate", rows);
  Numbers first = m->contents("sgd.sum:w");
  runOnRows(*m, "accumulate", rows);
  Numbers second = m->contents("sgd.sum:w");
  EXPECT_NUMBERS(m->contents("count"), {2});
  for (size_t i = 0; i < first.size(); ++i)
    second[i] -= first[i];
  EXPECT_NE(first, second) << "two batches with one mask";
}
