//===- ScheduleTest.cpp - the rate as a function of the updates -----------===//
//
// Row T08, and of T02 that a skipped update does not count.
//
//===----------------------------------------------------------------------===//
#include "tests/optimizers/Fixtures.h"

#include "passes/partition/optimizers/Schedules.h"

#include <set>

using namespace tandem;
using namespace tandem::test;

namespace {

class Schedules : public RowTest {
protected:
  static CompileOptions withSchedule(const std::string &schedule) {
    CompileOptions options;
    options.optimizer = "sgd:lr=0.5";
    options.lrSchedule = schedule;
    return options;
  }
};

} // namespace
TANDEM_WAYS(Schedules, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Schedules, T08_EachHasThePublishedValues) {
  int left = isCuda() ? 4 : 1000;
  for (const Fixture &fixture : fixturesOf("schedules.txt")) {
    if (left-- == 0)
      return;
    SCOPED_TRACE(fixture.spec);
    auto m = compiled(Steps::source(DType::F32), withSchedule(fixture.spec));
    ASSERT_TRUE(m);
    Steps run(*m, DType::F32);
    EXPECT_NUMBERS(m->contents("sgd.updates"), {0});
    for (size_t i = 0; i < fixture.numbers.size(); i += 2) {
      double count = fixture.numbers[i], rate = fixture.numbers[i + 1];
      m->set("sgd.updates", {count});
      double before = m->contents("p1")[0];
      double gradient = drawn(7, 5 + run.count + 1)[0] + 0.25 * before;
      run.update();
      EXPECT_NEAR(m->contents("sgd.rate")[0], rate, 1e-6 * rate + 1e-12)
          << count;
      EXPECT_NEAR(m->contents("p1")[0], before - rate * gradient, 1e-6)
          << count;
      EXPECT_NUMBERS(m->contents("sgd.updates"), {count + 1});
    }
  }
}

// Programs set the rate that a schedule is of.
TEST_P(Schedules, T08_FollowsTheRateThatIsSet) {
  auto m = compiled(Steps::source(DType::F32),
                    withSchedule("linear:warmup=2,total=4"));
  ASSERT_TRUE(m);
  Steps run(*m, DType::F32);
  m->set("sgd.lr", {0.25});
  std::vector<double> rates;
  for (int i = 0; i < 6; ++i) {
    run.update();
    rates.push_back(m->contents("sgd.rate")[0]);
  }
  EXPECT_NUMBERS(rates, {0, 0.125, 0.25, 0.125, 0, 0});
  EXPECT_NUMBERS(m->contents("sgd.lr"), {0.25});
}

TEST_P(Schedules, T02_T08_ASkippedUpdateDoesNotCount) {
  CompileOptions options = withSchedule("linear:total=4");
  options.clip = "norm:1";
  auto m = compiled(Steps::source(DType::F32), options);
  ASSERT_TRUE(m);
  Steps run(*m, DType::F32);
  run.update();
  for (int i = 0; i < 2; ++i)
    run.update(/*isBad=*/true);
  EXPECT_NUMBERS(m->contents("sgd.skipped"), {2});
  EXPECT_NUMBERS(m->contents("sgd.updates"), {1});
  run.update();
  EXPECT_NUMBERS(m->contents("sgd.rate"), {0.375});
}

// Batches that are added up are no updates; an update without any gradient is
// none either.
TEST_P(Schedules, T08_AccumulatedBatchesDoNotCount) {
  CompileOptions options = withSchedule("linear:total=4");
  options.accumulate = true;
  auto m = compiled(Steps::source(DType::F32), options);
  ASSERT_TRUE(m);
  for (const char *program : {"accumulate", "accumulate", "step", "step"}) {
    Status status = m->model.run(program, {}, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_NUMBERS(m->contents("sgd.updates"), {2});
  runtime::Tensor none;
  std::vector<runtime::Argument> gradients;
  for (int p = 0; p < Steps::kParams; ++p)
    gradients.emplace_back(Steps::name(p), &none);
  ASSERT_TRUE(m->model.update(gradients).ok());
  EXPECT_NUMBERS(m->contents("sgd.updates"), {2});
  EXPECT_NUMBERS(m->contents("sgd.rate"), {0.375});
}

// A row of the table that is compared with nothing.
TEST(ScheduleTable, T08_EachHasASourceThatItIsComparedWith) {
  std::set<std::string> compared;
  for (const Fixture &fixture : fixturesOf("schedules.txt"))
    compared.insert(fixture.spec.substr(0, fixture.spec.find(':')));
  for (const ScheduleKind &kind : scheduleKinds())
    EXPECT_TRUE(compared.count(kind.name.str())) << kind.name.str();
}

TEST(ScheduleTable, T08_SaysWhatIsWrong) {
  auto error = [](const char *text) {
    std::string error;
    EXPECT_FALSE(parseScheduleSpec(text, error)) << text;
    return error;
  };
  EXPECT_EQ(error("cosin:total=10").substr(0, 54),
            "unknown schedule 'cosin' (did you mean 'cosine'?); kno");
  EXPECT_EQ(error("cosine:warmup=5"),
            "expected option 'total': updates until the last rate");
  EXPECT_EQ(error("linear:total=5,warmup=5"),
            "expected 'warmup' to be less than 'total'");
  EXPECT_EQ(error("linear:total=5,min=-1"),
            "expected option 'min' to be 0, or from 1.18e-38 to 1e+06 but got "
            "'-1'");
  EXPECT_EQ(error("linear:total=2.5"),
            "expected option 'total' to be an integer from 1 to 1.68e+07 but "
            "got '2.5'");
  EXPECT_EQ(error("wsd:total=10,decay=8,warmup=3"),
            "expected 'warmup' and 'decay' to be at most 'total' together");
  EXPECT_EQ(error("wsd:total=10,decay=8,anneal=log"),
            "expected option 'anneal' to be cosine or linear or sqrt but got "
            "'log'");
  EXPECT_EQ(error("onecycle:total=10,warmup=3").substr(0, 51),
            "unknown option 'warmup' of schedule 'onecycle'; kno");
  EXPECT_EQ(error("constant:from=0.5"),
            "'from' is of a 'warmup', and there is none");
  EXPECT_EQ(error("table:1=1"),
            "expected updates that rise from 0 on but got '1=1'");
  EXPECT_EQ(error("table:0=1,5=1,5=2"),
            "expected updates that rise from 0 on but got '5=2'");
  for (const char *text :
       {"table", "table:", "table:0", "table:0=x", "table:0=-1", "table:0.5=1",
        "table:0=nan", "table:warmup=2"})
    EXPECT_NE(error(text).find("expected UPDATES=PART"), std::string::npos);
  std::string many = "table:0=1";
  for (int i = 1; i <= 100; ++i)
    many += "," + std::to_string(i) + "=1";
  EXPECT_EQ(error(many.c_str()), "expected at most 100 points but got 101");
}
