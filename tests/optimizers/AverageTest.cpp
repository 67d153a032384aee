//===- AverageTest.cpp - averages of parameters over updates --------------===//
//
// Row T07, and of T02 that a skipped update changes none.
//
//===----------------------------------------------------------------------===//
#include "tests/optimizers/Fixtures.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {
class Averages : public RowTest {};
} // namespace
TANDEM_WAYS(Averages, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Averages, T07_FollowEachUpdateOfTheirParameter) {
  for (DType type : {DType::F32, DType::F64}) {
    if (isCuda() && type == DType::F64)
      continue;
    CompileOptions options;
    options.optimizer = "adamw:lr=0.25";
    options.ema = "0.75";
    options.swa = "start=2,every=3";
    auto m = compiled(Steps::source(type), options);
    options.ema = options.swa = "";
    auto plain = compiled(Steps::source(type), options);
    ASSERT_TRUE(m && plain);
    Steps run(*m, type), alone(*plain, type);
    std::vector<Numbers> ema(Steps::kParams), swa(Steps::kParams);
    std::vector<int> updates(Steps::kParams), averaged(Steps::kParams);
    for (int call = 1; call <= 12; ++call) {
      run.update();
      alone.update();
      ASSERT_EQ(run.values(), alone.values()) << "step reads an average";
      for (int p = 0; p < Steps::kParams; ++p) {
        const std::string &name = Steps::name(p);
        Numbers value = m->contents(name);
        if (p != 2 || call % 5 <= 2) {
          int n = ++updates[p];
          if (n == 1)
            ema[p] = value;
          for (size_t i = 0; i < value.size(); ++i)
            ema[p][i] = 0.75 * ema[p][i] + 0.25 * value[i];
          if (n == 2)
            swa[p] = value;
          if (n >= 2 && (n - 2) % 3 == 0) {
            ++averaged[p];
            for (size_t i = 0; i < value.size(); ++i)
              swa[p][i] += (value[i] - swa[p][i]) / averaged[p];
          }
        }
        EXPECT_NUMBERS(m->contents("ema_count:" + name),
                       {static_cast<double>(updates[p])});
        EXPECT_NUMBERS(m->contents("swa_count:" + name),
                       {static_cast<double>(averaged[p])});
        EXPECT_PRED_FORMAT2(areNear, m->contents("ema:" + name), ema[p]);
        if (averaged[p])
          EXPECT_PRED_FORMAT2(areNear, m->contents("swa:" + name), swa[p]);
      }
    }
  }
}

TEST_P(Averages, T02_T07_ASkippedUpdateChangesNone) {
  CompileOptions options;
  options.optimizer = "sgd:lr=0.25";
  options.ema = "0.75";
  options.swa = "start=1";
  options.clip = "norm:1";
  auto m = compiled(Steps::source(DType::F32), options);
  ASSERT_TRUE(m);
  Steps run(*m, DType::F32);
  run.update();
  auto averages = [&] {
    NamedNumbers values;
    for (const artifact::Value &value : m->model.manifest().values)
      if (value.name.starts_with("ema") || value.name.starts_with("swa"))
        values[value.name] = m->contents(value.name);
    return values;
  };
  NamedNumbers before = averages();
  EXPECT_EQ(before.size(), 5u * Steps::kParams);
  run.update(/*isBad=*/true);
  EXPECT_EQ(averages(), before);
  run.update();
  EXPECT_NE(averages(), before);
}
