//===- LossScaleTest.cpp - a loss that is scaled inside of the step -------===//
//
// Rows G06, G07 and T02, and of T03 what belongs to it: the loss is multiplied,
// the gradients are divided, checked and used, and the scale follows, as
// torch.amp.GradScaler does it, without anything on the host.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Regression.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class LossScale : public RowTest {
protected:
  /// All params and states but those that tell of scaling.
  static NamedNumbers values(CompiledMachine &m) {
    NamedNumbers values;
    for (const artifact::Value &value : m.model.manifest().values) {
      if (value.role != artifact::Role::Param &&
          value.role != artifact::Role::State)
        continue;
      bool tells = false;
      for (const char *state : {".scale", ".good", ".skipped", ".grad_norm"})
        tells |= value.name.ends_with(state);
      if (!tells)
        values[value.name] = m.contents(value.name);
    }
    return values;
  }
};

} // namespace
TANDEM_WAYS(LossScale, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(LossScale, G06_APowerOfTwoChangesNoBit) {
  for (const char *optimizer : {"sgd:lr=0.1,weight_decay=0.1", "adamw:lr=0.1"})
    for (const char *scale : {"1024", "dynamic", "dynamic:init=4,interval=2"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + scale);
      CompileOptions options;
      options.optimizer = optimizer;
      auto plain = compiled(regression(4), options);
      options.lossScale = scale;
      auto scaled = compiled(regression(4), options);
      ASSERT_TRUE(plain && scaled);
      for (int i = 0; i < 5; ++i) {
        runOnRows(*plain, "step", rowsOf(4 * i, 4));
        runOnRows(*scaled, "step", rowsOf(4 * i, 4));
        EXPECT_EQ(values(*scaled), values(*plain)) << "step " << i;
      }
    }
}

// A gradient of 1e-8 is 0 in f16.
TEST_P(LossScale, G06_HoldsWhatF16DoesNot) {
  Source source{nullptr, [](Trace &t) {
                  Tensor w = t.parameter("w", {2}, Init::constant(1));
                  Tensor low = cast(cast(w, DType::F16), DType::F32);
                  t.output("loss", sum(low) * 1e-8);
                }};
  CompileOptions options;
  options.optimizer = "sgd:lr=1e6";
  for (bool isScaled : {false, true}) {
    options.lossScale = isScaled ? "65536" : "";
    auto m = compiled(source, options);
    ASSERT_TRUE(m);
    Status status = m->model.step({}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    double moved = 1 - m->contents("w").at(0);
    EXPECT_NEAR(moved, isScaled ? 0.01 : 0, 1e-5);
  }
}

TEST_P(LossScale, G07_T02_OneNumberThatIsNoneSkipsAndHalves) {
  for (const char *optimizer :
       {"sgd:lr=0.1", "momentum:lr=0.1", "adam:lr=0.1", "adamw:lr=0.1"}) {
    SCOPED_TRACE(optimizer);
    CompileOptions options;
    options.optimizer = optimizer;
    options.lossScale = "dynamic:init=1024,interval=3";
    auto m = compiled(regression(2), options);
    ASSERT_TRUE(m);
    std::string name(optimizer, std::string_view(optimizer).find(':'));
    auto expect = [&](double scale, double good, double skipped) {
      EXPECT_NUMBERS(m->contents(name + ".scale"), {scale});
      EXPECT_NUMBERS(m->contents(name + ".good"), {good});
      EXPECT_NUMBERS(m->contents(name + ".skipped"), {skipped});
    };
    runOnRows(*m, "step", rowsOf(0, 2));
    runOnRows(*m, "step", rowsOf(2, 2));
    expect(1024, 2, 0);
    NamedNumbers before = values(*m);
    runOnRows(*m, "step", {0, 1, 0, 0, INFINITY, 0});
    expect(512, 0, 1);
    EXPECT_EQ(values(*m), before);
    runOnRows(*m, "step", {NAN, 1, 0, 0, 1, 0});
    expect(256, 0, 2);
    EXPECT_EQ(values(*m), before);
    // Three good steps in a row, and twice.
    for (int i = 0; i < 7; ++i)
      runOnRows(*m, "step", rowsOf(2 * i, 2));
    expect(1024, 1, 2);
    EXPECT_NE(values(*m), before);
  }
}

// A scale that stays is divided by, and an update without numbers left out.
TEST_P(LossScale, G07_AScaleThatStays) {
  CompileOptions options;
  options.optimizer = "adamw:lr=0.1";
  options.lossScale = "1000";
  auto m = compiled(regression(2), options);
  options.lossScale = "";
  auto plain = compiled(regression(2), options);
  ASSERT_TRUE(m && plain);
  runOnRows(*m, "step", {0, 1, 0, 0, INFINITY, 0});
  for (int i = 0; i < 3; ++i) {
    runOnRows(*m, "step", rowsOf(2 * i, 2));
    runOnRows(*plain, "step", rowsOf(2 * i, 2));
  }
  EXPECT_NUMBERS(m->contents("adamw.scale"), {1000});
  EXPECT_NUMBERS(m->contents("adamw.skipped"), {1});
  EXPECT_NUMBERS(m->contents("adamw.step:w"), {3});
  Numbers got = m->contents("w"), wanted = plain->contents("w");
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-5);
}

// The norm is that of the gradients that are unscaled and added up, and they
// are clipped once.
TEST_P(LossScale, T03_ClipsWhatIsUnscaledAndAccumulated) {
  CompileOptions options;
  options.optimizer = "sgd:lr=0.5";
  options.clip = "norm:0.3";
  auto whole = compiled(regression(6), options);
  options.accumulate = true;
  options.lossScale = "dynamic:interval=1";
  auto m = compiled(regression(2), options);
  ASSERT_TRUE(whole && m);
  for (int update = 0; update < 3; ++update) {
    for (int i = 0; i < 3; ++i)
      runOnRows(*m, i < 2 ? "accumulate" : "step",
                rowsOf(6 * update + 2 * i, 2));
    runOnRows(*whole, "step", rowsOf(6 * update, 6));
    EXPECT_NEAR(m->contents("sgd.grad_norm").at(0),
                whole->contents("sgd.grad_norm").at(0), 1e-5);
    Numbers got = m->contents("w"), wanted = whole->contents("w");
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 2e-6);
  }
  EXPECT_NUMBERS(m->contents("sgd.scale"), {65536 * 8});
}
