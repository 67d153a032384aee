//===- GroupTest.cpp - parameters with numbers of their own ---------------===//
//
// Row T05.
//
//===----------------------------------------------------------------------===//
#include "compiler/CheckOptions.h"
#include "tests/optimizers/Fixtures.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Groups : public RowTest {
protected:
  static CompileOptions withGroups(std::vector<std::string> groups,
                                   const std::string &optimizer) {
    CompileOptions options;
    options.optimizer = optimizer;
    options.groups = std::move(groups);
    return options;
  }

  /// What each parameter is after five updates.
  std::vector<Numbers> after5(const CompileOptions &options) {
    std::vector<Numbers> values(Steps::kParams);
    auto m = compiled(Steps::source(DType::F32), options);
    if (!m)
      return values;
    Steps run(*m, DType::F32);
    for (int i = 0; i < 5; ++i)
      run.update();
    for (int p = 0; p < Steps::kParams; ++p)
      values[p] = m->contents(Steps::name(p));
    return values;
  }
};

} // namespace
TANDEM_WAYS(Groups, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

// Each parameter moves as if all had the numbers of its group.
TEST_P(Groups, T05_TheFirstMatchWinsAndTheRestIsTheOptimizers) {
  for (const char *clip : {"", "value:0.5"}) {
    CompileOptions options =
        withGroups({"p0|p1:weight_decay=0,lr=0.5", "p[13]:weight_decay=0.75",
                    "4:lr=3", "p4:lr=0.125"},
                   "adamw:lr=0.25,weight_decay=0.5");
    options.groups.erase(options.groups.begin() + 2);
    options.clip = clip;
    std::vector<Numbers> values = after5(options);
    const char *alone[Steps::kParams] = {
        "adamw:lr=0.5,weight_decay=0", "adamw:lr=0.5,weight_decay=0",
        "adamw:lr=0.25,weight_decay=0.5", "adamw:lr=0.25,weight_decay=0.75",
        "adamw:lr=0.125,weight_decay=0.5"};
    for (int p = 0; p < Steps::kParams; ++p) {
      CompileOptions one;
      one.optimizer = alone[p];
      one.clip = clip;
      EXPECT_EQ(values[p], after5(one)[p]) << Steps::name(p) << clip;
    }
  }
}

TEST_P(Groups, T05_T08_RatesAndSchedulesOfTheirOwn) {
  CompileOptions options =
      withGroups({"p0:lr=0.125", "p1:lr_schedule=linear:total=2",
                  "p3:lr=1,weight_decay=0,lr_schedule=exponential:gamma=0.5"},
                 "sgd:lr=0.5");
  options.lrSchedule = "linear:warmup=2,total=4";
  auto m = compiled(Steps::source(DType::F32), options);
  ASSERT_TRUE(m);
  Steps run(*m, DType::F32);
  std::vector<double> rates[4];
  for (int i = 0; i < 4; ++i) {
    run.update();
    const char *names[] = {"sgd.rate", "sgd.group1.rate", "sgd.group2.rate",
                           "sgd.group3.rate"};
    for (int k = 0; k < 4; ++k)
      rates[k].push_back(m->contents(names[k])[0]);
  }
  EXPECT_NUMBERS(rates[0], {0, 0.25, 0.5, 0.25});
  EXPECT_NUMBERS(rates[1], {0, 0.0625, 0.125, 0.0625});
  EXPECT_NUMBERS(rates[2], {0.5, 0.25, 0, 0});
  EXPECT_NUMBERS(rates[3], {1, 0.5, 0.25, 0.125});
  m->set("sgd.group1.lr", {0.25});
  m->set("sgd.updates", {2});
  Numbers before = m->contents("p0");
  double gradient = drawn(15, run.count + 1)[0] + 0.25 * before[0];
  run.update();
  EXPECT_NEAR(m->contents("p0")[0], before[0] - 0.25 * gradient, 1e-6);
}

TEST_P(Groups, T05_WhatIsWrongIsSaid) {
  if (isCuda())
    return;
  auto error = [&](std::vector<std::string> groups) {
    return errorOf(Steps::source(DType::F32), withGroups(groups, "adamw"));
  };
  EXPECT_PART(
      error({"p[45]:lr=1", "p4|p:lr=2"}),
      "--group: 'p4|p' has no member: what it matches is of groups before "
      "it");
  EXPECT_PART(error({"p:lr=1"}),
              "--group: 'p' has no member: it matches no whole name of a param "
              "that is trained; there are 'p0', 'p1', 'p2', 'p3', 'p4'");
  for (auto [text, message] :
       {std::pair{"p0:rate=1", "unknown option 'rate' of optimizer 'adamw'; "
                               "known are 'lr', 'beta1'"},
        {"p(0:lr=1", "expected a regular expression, but got 'p(0'"},
        {"p0", "expected REGEX:KEY=VALUE,..., as '.*bias:weight_decay=0', but "
               "got 'p0'"},
        {"p0:lr=-1", "expected option 'lr' to be 0, or from"},
        {"p0:lr_schedule=cosine", "'lr_schedule': expected option 'total'"},
        {"p0:lr=1000,weight_decay=1", "expected 'lr' times 'weight_decay'"}})
    EXPECT_PART(checkOptions(withGroups({text}, "adamw")).message(), message);
  EXPECT_EQ(checkOptions(withGroups({"a:b:lr=1"}, "adamw")).message(), "");
}
