//===- OptimizersTest.cpp - optimizers beside what they were published as -===//
//
// Row T06: weight decay, coupled and decoupled, and undefined gradients, as
// published, for every row of the table.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/optimizers/Optimizers.h"
#include "tests/optimizers/Fixtures.h"

#include <cmath>
#include <set>

using namespace tandem;
using namespace tandem::test;

namespace {
class Optimizers : public RowTest {
protected:
  void expectPublished(DType type, int steps, double tolerance) {
    for (const Fixture &fixture : fixturesOf("steps.txt")) {
      SCOPED_TRACE(fixture.spec);
      CompileOptions options;
      options.optimizer = fixture.spec;
      options.effort = type == DType::F64 ? 0 : 2; // both kinds of code
      auto m = compiled(Steps::source(type), options);
      ASSERT_TRUE(m);
      Steps run(*m, type);
      auto wanted = fixture.numbers.begin();
      while (run.count < steps) {
        run.update();
        if (HasFatalFailure())
          return;
        if (run.count != 1 && run.count != 10 && run.count != 100)
          continue;
        double worst = 0;
        for (double value : run.values()) {
          ASSERT_FALSE(std::isnan(value)); // no maximum has it
          worst = std::max(worst, std::abs(value - *wanted++));
        }
        EXPECT_LE(worst, tolerance) << "after " << run.count << " steps";
      }
    }
  }
};
} // namespace
TANDEM_WAYS(Optimizers, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Optimizers, T06_EachIsItsSourceOver100StepsInF64) {
  if (!isCuda())
    expectPublished(DType::F64, 100, 1e-9);
}

TEST_P(Optimizers, T06_EachIsItsSourceInF32) {
  expectPublished(DType::F32, isCuda() ? 10 : 100, 1e-4);
}

// A row of the table that is compared with nothing.
TEST(OptimizerTable, T06_EachHasASourceThatItIsComparedWith) {
  std::set<std::string> compared;
  for (const char *file : {"steps.txt", "quantized.txt"})
    for (const Fixture &fixture : fixturesOf(file))
      compared.insert(fixture.spec.substr(0, fixture.spec.find(':')));
  for (const OptimizerKind &kind : optimizerKinds()) {
    EXPECT_TRUE(compared.count(kind.name.str())) << kind.name.str();
    EXPECT_FALSE(kind.source.empty()) << kind.name.str();
  }
}
