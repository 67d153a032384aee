//===- CoreModelTest.cpp - what programs compute --------------------------===//
//
// The regression of TestModel.h run through every program, against the same
// arithmetic written here in double; initial values; contexts.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Initialize.h"
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <gtest/gtest.h>
#include <thread>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Init;

namespace {

/// Loss and gradients of the regression in double.
struct Expected {
  double loss = 0, b = 0;
  std::vector<double> w = {0, 0, 0};
};

Expected expectedFor(const Tensor &x, const Tensor &y, const Tensor &w,
                     double b) {
  Expected e;
  for (int i = 0; i < 8; ++i) {
    double r = b - y.at(i);
    for (int j = 0; j < 3; ++j)
      r += x.at(3 * i + j) * w.at(j);
    e.loss += r * r / 8;
    e.b += 2 * r / 8;
    for (int j = 0; j < 3; ++j)
      e.w[j] += 2 * r * x.at(3 * i + j) / 8;
  }
  return e;
}

class Regression : public ::testing::Test {
protected:
  Model model = modelFor(regression());
  Tensor x = sampleX(), y = sampleY();
  Tensor one = tensorOf({1}, {});
  Tensor loss, pred, gw, gb;
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}};
  std::vector<Destination> outputs = {{"loss", &loss}, {"pred", &pred}};
  std::vector<Argument> cotangents = {{"loss", &one}};
  std::vector<Destination> grads = {{"w", &gw}, {"b", &gb}};

  Context forward() {
    Result<Context> context = model.forward(inputs, outputs);
    EXPECT_TRUE(context) << context.status().message();
    return std::move(*context);
  }
  void expectMessage(const Status &status, const std::string &part) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "expected '" << part << "' in: " << status.message();
  }
};

TEST_F(Regression, ForwardAndBackwardAgreeWithDouble) {
  Context context = forward();
  Expected e = expectedFor(x, y, *model.get("w"), 0);
  EXPECT_NEAR(loss.at(0), e.loss, 1e-5);
  ASSERT_TRUE(model.backward(context, cotangents, grads).ok());
  for (int j = 0; j < 3; ++j)
    EXPECT_NEAR(gw.at(j), e.w[j], 1e-5);
  EXPECT_NEAR(gb.at(0), e.b, 1e-5);
  EXPECT_EQ(model.get("steps")->at(0), 1);
}

TEST_F(Regression, AHoldKeepsOtherThreadsWaiting) {
  std::thread other;
  {
    Result<Hold> hold = model.hold();
    ASSERT_TRUE(hold.ok()) << hold.status().message();
    other = std::thread([&] {
      for (uint64_t seed = 1; seed < 50; ++seed)
        EXPECT_TRUE(model.initialize(seed).ok());
    });
    // Its own thread's calls are not kept, and nobody comes between them.
    std::vector<float> before = valuesOf(*model.get("w"));
    Context context = forward();
    EXPECT_TRUE(model.backward(context, cotangents, grads).ok());
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(valuesOf(*model.get("w")), before);
    expectMessage(model.hold().status(), "holds the model already");
    EXPECT_TRUE(model.get("b").ok()); // still held
  }
  other.join();
  EXPECT_TRUE(model.hold().ok());
}

TEST_F(Regression, AHookOfACallInAHoldIsRefusedAsAnyOther) {
  Result<Hold> hold = model.hold();
  ASSERT_TRUE(hold.ok());
  auto hooks = std::make_shared<SavedHooks>();
  Status said;
  hooks->pack = [&](std::string_view, const Tensor &) {
    said = model.get("w").status();
    return Result<std::shared_ptr<void>>(said);
  };
  hooks->unpack = [](std::string_view, const std::shared_ptr<void> &) {
    return Result<Tensor>(Tensor());
  };
  expectMessage(model.forward(inputs, outputs, hooks).status(), "a hook");
  expectMessage(said, "a hook cannot call the model that calls it");
  EXPECT_TRUE(model.get("w").ok());
}

TEST_F(Regression, EvaluateGivesPredictions) {
  std::vector<Argument> in = {{"x", &x}};
  std::vector<Destination> out = {{"pred", &pred}};
  ASSERT_TRUE(model.run("evaluate", in, out).ok());
  Tensor w = *model.get("w");
  EXPECT_NEAR(pred.at(2),
              x.at(6) * w.at(0) + x.at(7) * w.at(1) + x.at(8) * w.at(2), 1e-6);
}

TEST_F(Regression, UpdateInPlaceAndCopied) {
  std::vector<float> before = valuesOf(*model.get("w"));
  gw = tensorOf({1, 2, 3}, {3});
  gb = tensorOf({4}, {});
  std::vector<Argument> given = {{"b", &gb}, {"w", &gw}};
  ASSERT_TRUE(model.update(given).ok());
  for (int j = 0; j < 3; ++j)
    EXPECT_FLOAT_EQ(model.get("w")->at(j), before[j] - 0.1f * (j + 1));
  EXPECT_FLOAT_EQ(model.get("b")->at(0), -0.4f);
}

TEST_F(Regression, StepTrainsAsTheThreeProgramsDoBitwise) {
  Model other = modelFor(regression(), {1, 0});
  std::vector<Destination> lossOnly = {{"loss", &loss}};
  Tensor otherLoss;
  std::vector<Destination> otherOutputs = {{"loss", &otherLoss}};
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(model.step(inputs, lossOnly).ok());
    Result<Context> context = other.forward(inputs, otherOutputs);
    ASSERT_TRUE(context);
    ASSERT_TRUE(other.backward(*context, cotangents, grads).ok());
    std::vector<Argument> given = {{"w", &gw}, {"b", &gb}};
    ASSERT_TRUE(other.update(given).ok());
    ASSERT_EQ(loss.at(0), otherLoss.at(0)) << "step " << i;
  }
  EXPECT_EQ(valuesOf(*model.get("w")), valuesOf(*other.get("w")));
  EXPECT_EQ(model.get("steps")->at(0), 50);
  EXPECT_LT(loss.at(0), 0.1);
}

TEST_F(Regression, StridedAndMisalignedInputsGiveTheSame) {
  Context first = forward();
  std::vector<float> expected = valuesOf(pred);
  // x as the transposed view of its transpose, y one float past an alignment.
  Tensor columns = *Tensor::empty(DType::F32, std::vector<int64_t>{3, 8});
  Tensor view =
      *columns.view(std::vector<int64_t>{8, 3}, std::vector<int64_t>{1, 8});
  ASSERT_TRUE(view.copyFrom(x).ok());
  Tensor longer = *Tensor::empty(DType::F32, std::vector<int64_t>{9});
  Tensor shifted = *longer.slice(1, 9);
  ASSERT_TRUE(shifted.copyFrom(y).ok());
  std::vector<Argument> in = {{"x", &view}, {"y", &shifted}};
  Tensor strided = *Tensor::empty(DType::F32, std::vector<int64_t>{16});
  Tensor to = *strided.view(std::vector<int64_t>{8}, std::vector<int64_t>{2});
  std::vector<Destination> out = {{"pred", &to}};
  Result<Context> second = model.forward(in, out);
  ASSERT_TRUE(second) << second.status().message();
  EXPECT_EQ(valuesOf(to), expected);
  ASSERT_TRUE(model.backward(first, cotangents, grads).ok());
  std::vector<float> gradient = valuesOf(gw);
  Tensor wide = *one.view(std::vector<int64_t>{}, std::vector<int64_t>{});
  std::vector<Argument> cts = {{"loss", &wide}};
  ASSERT_TRUE(model.backward(*second, cts, grads).ok());
  EXPECT_EQ(valuesOf(gw), gradient);
}

TEST_F(Regression, AnOutputMayLieOverAnInput) {
  forward();
  std::vector<float> expected = valuesOf(pred);
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  std::vector<Destination> out = {{"pred", &y}};
  ASSERT_TRUE(model.run("forward", in, out).ok());
  EXPECT_EQ(valuesOf(y), expected);
}

// C01, C02: a context is used once, unless the graph is retained.
TEST_F(Regression, C01_C02_ContextIsUsedOnce) {
  Context context = forward();
  EXPECT_TRUE(context.live());
  ASSERT_TRUE(model.backward(context, cotangents, grads, {true, false}).ok());
  std::vector<float> first = valuesOf(gw);
  ASSERT_TRUE(model.backward(context, cotangents, grads, {true, false}).ok());
  EXPECT_EQ(valuesOf(gw), first);
  ASSERT_TRUE(model.backward(context, cotangents, grads).ok());
  EXPECT_FALSE(context.live());
  expectMessage(model.backward(context, cotangents, grads),
                "cannot run 'backward': the context was already used");
}

// C05: what the backward reads was written since.
TEST_F(Regression, C05_WrittenInputIsAnError) {
  Context context = forward();
  std::string before = std::to_string(x.version()),
              after = std::to_string(x.version() + 1);
  setAt(x, 0, 1);
  expectMessage(model.backward(context, cotangents, grads),
                "input 'x' (index 2), which it reads, was written after the "
                "forward: expected version " +
                    before + " but got " + after);
  EXPECT_TRUE(context.live());
}

TEST_F(Regression, C05_WriteThroughAViewOrReportedIsAnError) {
  Context context = forward();
  ASSERT_TRUE(x.slice(0, 1)->fill(0).ok());
  EXPECT_FALSE(model.backward(context, cotangents, grads).ok());
  Context second = forward();
  x.markWritten();
  EXPECT_FALSE(model.backward(second, cotangents, grads).ok());
}

// C07: what only the forward read may be written.
TEST_F(Regression, C07_UnreadValuesMayBeWritten) {
  Context context = forward();
  ASSERT_TRUE(y.fill(7).ok());
  ASSERT_TRUE(model.set("w", tensorOf({1, 2, 3}, {3})).ok());
  EXPECT_TRUE(model.backward(context, cotangents, grads).ok());
}

TEST_F(Regression, C05_ParamReadByTheBackwardIsChecked) {
  artifact::Manifest m = regression();
  artifact::Program &backward = m.programs[2];
  artifact::Slot w;
  w.role = artifact::Role::Param;
  w.name = "w";
  w.shape = {3};
  backward.arguments.push_back(w);
  Model reads = modelFor(m);
  Result<Context> context = reads.forward(inputs, outputs);
  ASSERT_TRUE(context);
  ASSERT_TRUE(reads.backward(*context, cotangents, grads, {true, false}).ok());
  std::vector<Argument> given = {{"w", &gw}, {"b", &gb}};
  ASSERT_TRUE(reads.update(given).ok());
  expectMessage(reads.backward(*context, cotangents, grads),
                "param 'w' (index 3), which it reads, was written after");
}

TEST_F(Regression, C10_TwoContextsInAnyOrder) {
  Context a = forward();
  Tensor otherX = *Tensor::empty(DType::F32, std::vector<int64_t>{8, 3});
  ASSERT_TRUE(otherX.fill(0.25).ok());
  std::vector<Argument> in = {{"x", &otherX}, {"y", &y}};
  Result<Context> b = model.forward(in, outputs);
  ASSERT_TRUE(b);
  ASSERT_TRUE(model.backward(*b, cotangents, grads).ok());
  Expected eb = expectedFor(otherX, y, *model.get("w"), 0);
  EXPECT_NEAR(gw.at(1), eb.w[1], 1e-5);
  ASSERT_TRUE(model.backward(a, cotangents, grads).ok());
  Expected ea = expectedFor(x, y, *model.get("w"), 0);
  EXPECT_NEAR(gw.at(1), ea.w[1], 1e-5);
}

TEST_F(Regression, C11_ContextOfAnotherModel) {
  Context context;
  expectMessage(model.backward(context, cotangents, grads), "an empty one");
  {
    Model other = modelFor(regression());
    Result<Context> theirs = other.forward(inputs, outputs);
    ASSERT_TRUE(theirs);
    context = std::move(*theirs);
    expectMessage(model.backward(context, cotangents, grads),
                  "belongs to another model");
  }
  // The model is gone; the context is still there and still refused.
  expectMessage(model.backward(context, cotangents, grads),
                "belongs to another model");
}

TEST_F(Regression, C13_TwoThreadsOneContext) {
  for (int round = 0; round < 50; ++round) {
    Context context = forward();
    Status status[2];
    Tensor results[2];
    std::thread threads[2];
    for (int t = 0; t < 2; ++t)
      threads[t] = std::thread([&, t] {
        std::vector<Destination> out = {{"w", &results[t]}};
        status[t] = model.backward(context, cotangents, out);
      });
    for (std::thread &thread : threads)
      thread.join();
    ASSERT_NE(status[0].ok(), status[1].ok());
    expectMessage(status[0].ok() ? status[1] : status[0], "already used");
  }
}

TEST_F(Regression, C15_FailedCheckKeepsTheContext) {
  Context context = forward();
  Tensor wrong = tensorOf({1, 2}, {2});
  std::vector<Argument> cts = {{"loss", &wrong}};
  expectMessage(
      model.backward(context, cts, grads),
      "cotangent of 'loss' (index 0): expected f32 [] but got f32 [2]");
  EXPECT_TRUE(model.backward(context, cotangents, grads).ok());
}

TEST_F(Regression, B03_CreateGraphIsRefusedWithNames) {
  artifact::Manifest m = regression();
  m.mutatedInBackward = {2, 3};
  Model writes = modelFor(m);
  Result<Context> context = writes.forward(inputs, outputs);
  ASSERT_TRUE(context);
  expectMessage(writes.backward(*context, cotangents, grads, {false, true}),
                "param 'w' (index 2), param 'b' (index 3)");
  EXPECT_TRUE(writes.backward(*context, cotangents, grads).ok());
  Context plain = forward();
  EXPECT_TRUE(model.backward(plain, cotangents, grads, {false, true}).ok());
}

TEST_F(Regression, ManyThreadsRunOneModel) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  Context reference = forward();
  ASSERT_TRUE(model.backward(reference, cotangents, grads).ok());
  std::vector<float> expected = valuesOf(gw);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Tensor l, g;
        std::vector<Destination> out = {{"loss", &l}}, to = {{"w", &g}};
        Result<Context> context = model.forward(inputs, out);
        if (!context || !model.backward(*context, cotangents, to).ok() ||
            valuesOf(g) != expected)
          ++failures;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(model.get("steps")->at(0), 201);
}

TEST_F(Regression, MemoryIsAccountedAndReturns) {
  MemoryUse before = model.memory();
  EXPECT_EQ(before.planned, 512);
  bool isHost = testDevice().isHost(), isAway = x.device() != testDevice();
  EXPECT_EQ(before.current, 4 * 64 + (isHost ? 0 : 256 + 128))
      << "on a device, the arena and the constants are there at once";
  {
    Context a = forward();
    EXPECT_EQ(model.memory().current,
              before.current + 64 + 2 * 64 + 64 + (isAway ? 128 + 64 : 0))
        << "saved r, outputs, the new value of steps; copies of x and y";
  }
  int64_t current = model.memory().current;
  for (int i = 0; i < 5; ++i) {
    Context again = forward();
    EXPECT_TRUE(model.backward(again, cotangents, grads).ok());
  }
  EXPECT_EQ(model.memory().current, current + 2 * 64 + (isAway ? 64 : 0))
      << "the two gradients; a copy of the cotangent";
  EXPECT_GE(model.memory().peak, model.memory().current);
}

TEST(Wide, SameBitsForAnyNumberOfThreads) {
  std::vector<float> values(10007);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::cos(0.1 * static_cast<double>(i)));
  auto count = static_cast<int64_t>(values.size());
  Tensor x = tensorOf(values, {count});
  std::vector<Argument> in = {{"x", &x}};
  for (int threads : {1, 2, 3, 8})
    for (int64_t grain : {1, 16, 5000, 20000}) {
      Model model = modelFor(wide(count, grain), {threads, 0});
      Tensor big, scaled;
      std::vector<Destination> out = {{"big", &big}, {"scaled", &scaled}};
      ASSERT_TRUE(model.run("evaluate", in, out).ok());
      big = *big.onHost();
      scaled = *scaled.onHost();
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(big.data<float>()[i], values[i] * values[i] + float(i));
        ASSERT_EQ(scaled.data<float>()[i], values[i] * float(i % 4 + 1));
      }
    }
}

TEST(Initialize, CounterIsTheWorkloadsGenerator) {
  // uniform(seed=1, stream=3, shape=(5,), scale=0.5) of the workloads, computed
  // from their definition with unbounded integers.
  const float expected[] = {-0x1.ec6bdp-3f, 0x1.4e6a28p-4f, 0x1.c51f78p-3f,
                            0x1.974ccp-5f, 0x1.a8b764p-3f};
  Tensor t = *Tensor::empty(DType::F32, std::vector<int64_t>{5});
  initialize(t, Init::counter(3, 0.5), 1, "any name");
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(t.data<float>()[i], expected[i]);
}

TEST(Initialize, DependsOnSeedAndNameOnly) {
  auto draw = [](uint64_t seed, const char *name) {
    Tensor t = *Tensor::empty(DType::F32, std::vector<int64_t>{64});
    initialize(t, Init::uniform(-2, 3), seed, name);
    return valuesOf(t);
  };
  EXPECT_EQ(draw(1, "w"), draw(1, "w"));
  EXPECT_NE(draw(1, "w"), draw(2, "w"));
  EXPECT_NE(draw(1, "w"), draw(1, "v"));
}

TEST(Initialize, DistributionsHaveTheirMoments) {
  constexpr int64_t count = 1 << 16;
  Tensor t = *Tensor::empty(DType::F64, std::vector<int64_t>{count});
  auto moments = [&](Init init) {
    initialize(t, init, 7, "w");
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; ++i)
      mean += t.at(i) / count;
    for (int64_t i = 0; i < count; ++i)
      square += (t.at(i) - mean) * (t.at(i) - mean) / count;
    return std::pair(mean, std::sqrt(square));
  };
  // Five standard errors of each estimate.
  auto [mean, deviation] = moments(Init::normal(1, 2));
  EXPECT_NEAR(mean, 1, 5 * 2 / std::sqrt(count));
  EXPECT_NEAR(deviation, 2, 5 * 2 / std::sqrt(2.0 * count));
  auto [middle, width] = moments(Init::uniform(-1, 3));
  double sigma = 4 / std::sqrt(12.0);
  EXPECT_NEAR(middle, 1, 5 * sigma / std::sqrt(count));
  EXPECT_NEAR(width, sigma, 5 * sigma / std::sqrt(count));
}

TEST(Initialize, OtherTypes) {
  for (DType type : {DType::F16, DType::BF16, DType::F64}) {
    Tensor t = *Tensor::empty(type, std::vector<int64_t>{16});
    initialize(t, Init::uniform(0.5, 1), 3, "w");
    for (int i = 0; i < 16; ++i) {
      EXPECT_GE(t.at(i), 0.5);
      EXPECT_LE(t.at(i), 1);
    }
  }
  Tensor n = *Tensor::empty(DType::I64, std::vector<int64_t>{2});
  initialize(n, Init::constant(-7), 3, "n");
  EXPECT_EQ(n.data<int64_t>()[1], -7);
  initialize(n, Init::seed(), (uint64_t(1) << 60) + 3, "n");
  EXPECT_EQ(n.data<int64_t>()[0], 3);
  EXPECT_EQ(n.data<int64_t>()[1], 0);
}

} // namespace
