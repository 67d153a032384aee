//===- UndefinedTest.cpp - cotangents that are not there ------------------===//
//
// Rows J02 to J08, B16 and B17: what only undefined cotangents need does not
// run, gradients that only they feed are undefined, and what is defined is what
// zeros would have given, for every mask of three outputs.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Choice;
using artifact::Condition;
using artifact::Launch;
using artifact::Slot;

namespace {

using Values = std::vector<float>;

Choice choice(Condition when, std::optional<int64_t> copy = {}) {
  Choice made;
  made.when = std::move(when);
  made.copy = copy;
  return made;
}

/// Outputs a = 2 x, b = x * y, c = 2 y. Gradients: x = 2 ca + cb * y,
/// y = cb * x + 2 cc, z: never there; w = cc with zeros for what is undefined,
/// always there if anything is. The backward counts its runs in state "runs"
/// whenever b's cotangent is there (B17), and adds cc to the input "main"
/// (B16).
Maker three() {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  m.value(Role::Input, "y", {4}).requiresGrad = true;
  m.value(Role::Input, "main", {4});
  m.value(Role::Param, "z", {4}).requiresGrad = true;
  m.value(Role::Param, "w", {4}).requiresGrad = true;
  m.value(Role::State, "runs", {});
  for (const char *name : {"a", "b", "c", "n"})
    m.value(Role::Output, name, {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t y = m.argument(Role::Input, "y", {4});
  m.argument(Role::Input, "main", {4});
  int64_t a = m.result(Role::Output, "a", {4});
  int64_t b = m.result(Role::Output, "b", {4});
  int64_t c = m.result(Role::Output, "c", {4});
  int64_t n = m.result(Role::Output, "n", {4});
  m.launch("twice", {x}, a, 4);
  m.launch("mul", {x, y}, b, 4);
  m.launch("twice", {y}, c, 4);
  m.launch("copy", {y}, n, 4);

  m.program("backward");
  Slot *slot = nullptr;
  int64_t ca = m.argument(Role::Cotangent, "a", {4});
  int64_t cb = m.argument(Role::Cotangent, "b", {4});
  int64_t cc = m.argument(Role::Cotangent, "c", {4});
  x = m.argument(Role::Input, "x", {4});
  y = m.argument(Role::Input, "y", {4});
  int64_t main = m.argument(Role::Input, "main", {4}, &slot);
  slot->asFound = true;
  int64_t runs = m.argument(Role::State, "runs", {}, &slot);
  slot->asFound = true;
  int64_t gx = m.result(Role::Grad, "x", {4}, &slot);
  slot->needs = {{"a", "b"}};
  int64_t gy = m.result(Role::Grad, "y", {4}, &slot);
  slot->needs = {{"b", "c"}};
  int64_t gw = m.result(Role::Grad, "w", {4});
  Slot &counted = m.update("runs", {});
  counted.needs = {{"b"}};
  m.update("main", {4}).needs = {{"c"}};
  int64_t da = m.arena(16), dbx = m.arena(16), dby = m.arena(16);
  int64_t dc = m.arena(16);
  m.launch("twice", {ca}, da, 4).needs = {{"a"}};
  m.launch("mul", {cb, y}, dbx, 4).needs = {{"b"}};
  m.launch("mul", {cb, x}, dby, 4).needs = {{"b"}};
  m.launch("twice", {cc}, dc, 4).needs = {{"c"}};
  Launch &sumX = m.launch("add", {da, dbx}, gx, 4);
  sumX.needs = {{"a", "b"}};
  sumX.choices = {choice({{"a"}, {"b"}}), choice({{"a"}}, 0),
                  choice({{"b"}}, 1)};
  Launch &sumY = m.launch("add", {dby, dc}, gy, 4);
  sumY.needs = {{"b", "c"}};
  sumY.choices = {choice({{"b"}, {"c"}}), choice({{"b"}}, 0),
                  choice({{"c"}}, 1)};
  Launch &orZero = m.launch("copy", {cc}, gw, 4);
  orZero.choices = {choice({{"c"}}, 0), choice({}, -1)};
  m.launch("increment", {runs}, runs, 1).needs = {{"b"}};
  m.launch("add", {main, cc}, main, 4).needs = {{"c"}};
  return m;
}

class Undefined : public ::testing::Test {
protected:
  Model model = three().load();
  Tensor x = filled({4}, 1), y = filled({4}, 5), mainGrad = filled({4});
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}, {"main", &mainGrad}};

  Context forward() {
    Result<Context> context = model.forward(inputs, {});
    EXPECT_TRUE(context) << context.status().message();
    return std::move(*context);
  }
  double runs() { return model.get("runs")->at(0); }
};

TEST_F(Undefined, J05_AllMasksAreAsWithZeros) {
  for (int mask = 0; mask < 8; ++mask) {
    Tensor ct[3], none, zero[3];
    std::vector<Argument> given, zeros;
    const char *names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) {
      ct[i] = filled({4}, i + 1, 0.5);
      zero[i] = mask >> i & 1 ? ct[i] : filled({4}, 0, 0);
      // Left out, null or undefined.
      if (mask >> i & 1)
        given.emplace_back(names[i], &ct[i]);
      else if (i == 0)
        given.emplace_back(names[i], &none);
      else if (i == 1)
        given.emplace_back(names[i], nullptr);
      zeros.emplace_back(names[i], &zero[i]);
    }
    Tensor g[3], full[3];
    std::vector<Destination> to = {{"x", &g[0]}, {"y", &g[1]}, {"w", &g[2]}};
    std::vector<Destination> all = {
        {"x", &full[0]}, {"y", &full[1]}, {"w", &full[2]}};
    Context context = forward();
    BackwardOptions retain{true, false};
    ASSERT_TRUE(model.backward(context, zeros, all, retain).ok());
    double before = runs();
    Values main = valuesOf(mainGrad);
    uint64_t version = mainGrad.version(),
             runsVersion = model.get("runs")->version();
    ASSERT_TRUE(model.backward(context, given, to).ok());
    bool a = mask & 1, b = mask & 2, c = mask & 4;
    EXPECT_EQ(g[0].defined(), a || b) << mask;
    EXPECT_EQ(g[1].defined(), b || c) << mask;
    EXPECT_EQ(g[2].defined(), mask != 0) << mask;
    for (int i = 0; i < 3; ++i)
      if (g[i].defined()) {
        EXPECT_EQ(valuesOf(g[i]), valuesOf(full[i])) << mask << " " << i;
      }
    // B17, B16: writes that an undefined cotangent alone would have caused.
    EXPECT_EQ(runs(), before + b);
    EXPECT_EQ(model.get("runs")->version(), runsVersion + b);
    EXPECT_EQ(mainGrad.version(), version + c);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(mainGrad.at(i), main[i] + (c ? ct[2].at(i) : 0));
  }
}

TEST_F(Undefined, J04_NothingIsDefined) {
  Context context = forward();
  Tensor gx = filled({4}), gy, gw;
  Tensor kept = gx;
  std::vector<Destination> to = {{"x", &gx}, {"y", &gy}, {"w", &gw}};
  ASSERT_TRUE(model.backward(context, {}, to, {true, false}).ok());
  EXPECT_FALSE(gx.defined() || gy.defined() || gw.defined());
  EXPECT_EQ(valuesOf(kept), Values({0, 1, 2, 3})) << "left as it is";
  EXPECT_EQ(runs(), 0);
  EXPECT_TRUE(context.live());
  ASSERT_TRUE(model.backward(context, {}, to).ok());
  EXPECT_FALSE(context.live());
}

TEST_F(Undefined, J03_AGradientThatTheProgramNeverGives) {
  Context context = forward();
  Tensor one = filled({4}, 1, 0), gz = filled({4}), gx;
  std::vector<Argument> cts = {{"a", &one}};
  std::vector<Destination> to = {{"z", &gz}, {"x", &gx}};
  Status status = model.backward(context, cts, to);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(gz.defined());
  EXPECT_EQ(valuesOf(gx), Values({2, 2, 2, 2}));
  Context again = forward();
  to = {{"main", &gz}};
  expectMessage(model.backward(again, cts, to), "unknown result 'main'");
}

TEST_F(Undefined, J02_ACotangentOfWhatIsNotDifferentiable) {
  Context context = forward();
  Tensor one = filled({4}, 1, 0), none;
  std::vector<Argument> cts = {{"a", &one}, {"n", &one}};
  expectMessage(model.backward(context, cts, {}),
                "output 'n' is not differentiable: expected no cotangent of it "
                "but got f32 [4]");
  cts = {{"a", &one}, {"n", &none}};
  EXPECT_TRUE(model.backward(context, cts, {}).ok());
}

TEST_F(Undefined, J06_WrongAndStridedCotangents) {
  Context context = forward();
  Tensor wrong = filled({5}), doubles = *filled({4}).to(DType::F64);
  Tensor ct = filled({4}, 1), gx;
  std::vector<Destination> to = {{"x", &gx}};
  std::vector<Argument> cts = {{"a", &wrong}, {"b", &doubles}};
  expectMessage(model.backward(context, cts, to),
                "cotangent of 'a' (index 0): expected f32 [4] but got f32 [5]; "
                "cotangent of 'b' (index 1): expected f32 [4] but got f64 [4]");
  Tensor reversed = filled({4}, 4, -1),
         gaps = *Tensor::zeros(DType::F32, {{8}});
  Tensor views[] = {*reversed.view(Sizes{4}, Sizes{-1}, 3),
                    *gaps.view(Sizes{4}, Sizes{2}),
                    *filled({1}, 7).view(Sizes{4}, Sizes{0})};
  ASSERT_TRUE(views[1].copyFrom(ct).ok());
  for (Tensor &view : views) {
    Tensor dense = *view.dense(), gd;
    std::vector<Argument> strided = {{"b", &view}}, plain = {{"b", &dense}};
    std::vector<Destination> toDense = {{"x", &gd}};
    ASSERT_TRUE(model.backward(context, strided, to, {true, false}).ok());
    ASSERT_TRUE(model.backward(context, plain, toDense, {true, false}).ok());
    EXPECT_EQ(valuesOf(gx), valuesOf(gd));
    gx = Tensor();
  }
}

TEST_F(Undefined, J08_NothingRequiresGrad) {
  Maker m = three();
  m.manifest.programs.pop_back();
  Model inference = m.load();
  Result<Context> context = inference.forward(inputs, {});
  ASSERT_TRUE(context);
  expectMessage(inference.backward(*context, {}, {}),
                "the artifact has no program 'backward'; it has 'forward'");
}

/// The update of w and v by their gradients, a count of steps, and one of w's.
Maker updates() {
  Maker m;
  m.value(Role::Param, "w", {2}).requiresGrad = true;
  m.value(Role::Param, "v", {2}).requiresGrad = true;
  m.value(Role::Param, "dead", {2}).requiresGrad = true;
  m.value(Role::State, "momentum.w", {2});
  m.value(Role::State, "steps", {});
  m.value(Role::State, "steps.w", {});
  m.program("update");
  int64_t gw = m.argument(Role::Grad, "w", {2});
  int64_t gv = m.argument(Role::Grad, "v", {2});
  int64_t w = m.argument(Role::Param, "w", {2});
  int64_t v = m.argument(Role::Param, "v", {2});
  int64_t mw = m.argument(Role::State, "momentum.w", {2});
  int64_t steps = m.argument(Role::State, "steps", {});
  int64_t own = m.argument(Role::State, "steps.w", {});
  m.update("w", {2});
  int64_t newV = m.result(Role::Update, "v", {2});
  m.update("momentum.w", {2});
  m.update("steps", {});
  m.update("steps.w", {}).needs = {{"w"}};
  int64_t scaled = m.arena(8);
  m.launch("increment", {steps}, steps, 1);
  m.launch("increment", {own}, own, 1).needs = {{"w"}};
  m.launch("twice", {gw}, scaled, 2);
  m.launch("add", {mw, scaled}, mw, 2);
  m.launch("add", {w, mw}, w, 2);
  m.launch("add", {v, gv}, newV, 2);
  return m;
}

TEST(Update, J03_UndefinedGradientsLeaveTheirParametersAlone) {
  Model model = updates().load();
  Tensor gw = filled({2}, 1, 1), gv = filled({2}, 5, 0), none;
  std::vector<Argument> all = {{"w", &gw}, {"v", &gv}, {"dead", &none}};
  ASSERT_TRUE(model.update(all).ok());
  EXPECT_EQ(valuesOf(*model.get("w")), Values({2, 4}));
  uint64_t version = model.get("w")->version();
  std::vector<Argument> some = {{"w", &none}, {"v", &gv}};
  ASSERT_TRUE(model.update(some).ok());
  EXPECT_EQ(valuesOf(*model.get("w")), Values({2, 4}));
  EXPECT_EQ(valuesOf(*model.get("momentum.w")), Values({2, 4}));
  EXPECT_EQ(model.get("w")->version(), version);
  EXPECT_EQ(valuesOf(*model.get("v")), Values({10, 10}));
  std::vector<Argument> others = {{"w", &gw}, {"v", nullptr}};
  ASSERT_TRUE(model.update(others).ok());
  EXPECT_EQ(valuesOf(*model.get("w")), Values({6, 12}));
  EXPECT_EQ(valuesOf(*model.get("v")), Values({10, 10}));
  EXPECT_EQ(model.get("steps")->at(0), 3);
  EXPECT_EQ(model.get("steps.w")->at(0), 2);
  // Without any gradient there was a step all the same.
  std::vector<Argument> nothing = {{"w", &none}, {"v", nullptr}};
  ASSERT_TRUE(model.update(nothing).ok());
  EXPECT_EQ(model.get("steps")->at(0), 3);
  EXPECT_EQ(model.get("steps.w")->at(0), 2);
  std::vector<Argument> dead = {{"w", &gw}, {"v", &gv}, {"dead", &gv}};
  expectMessage(model.update(dead), "unknown argument 'dead'");
  std::vector<Argument> missing = {{"w", &gw}};
  expectMessage(model.update(missing), "missing grad of 'v' (index 1)");
}

TEST(Update, J03_ConditionsAreOfGradientsThatItTakes) {
  Maker m = updates();
  m.manifest.programs[0].launches[1].needs = {{"dead"}, {}};
  expectMessage(validate(m.manifest, 0),
                "/programs/0/launches/1/needs/0: there is no gradient of "
                "'dead' among the arguments");
  expectMessage(validate(m.manifest, 0),
                "/programs/0/launches/1/needs/1: expected at least one "
                "gradient");
}

} // namespace
