//===- ScalingTest.cpp - training steps with loss scaling, captured -------===//
//
// Row S16: forward, backward and update of a model whose gradients go through
// f16, recorded with no gradient there and replayed with other scales.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Control.h"
#include "tests/cuda/OnEmulator.h"
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::cuda::driver;
using namespace tandem::test;
using runtime::Backend;
using runtime::Context;
using runtime::Model;
using runtime::StreamScope;
using runtime::Tensor;

namespace {

struct Training {
  Model model = modelFor(scaledRegression());
  Tensor x = sampleX(), y = sampleY(), one = tensorOf({1}, {});
  Tensor loss = tensorOf({0}, {}), scaled = tensorOf({0}, {}),
         pred = tensorOf(std::vector<float>(8), {8});
  Tensor w, b; ///< the gradients

  void setData(int step) {
    std::vector<float> xs = valuesOf(sampleX());
    for (float &value : xs)
      value += 0.1f * static_cast<float>(step);
    EXPECT_TRUE(x.copyFrom(tensorOf(xs, {8, 3})).ok());
  }
  void setScale(float scale) {
    EXPECT_TRUE(model.set("scale", tensorOf({scale}, {})).ok());
  }
  void clearGradients() { w = b = Tensor(); }
  Status run() {
    runtime::Argument inputs[] = {{"x", &x}, {"y", &y}};
    runtime::Destination outputs[] = {
        {"loss", &loss}, {"pred", &pred}, {"scaled", &scaled}};
    Result<Context> context = model.forward(inputs, outputs);
    if (!context)
      return std::move(context).status();
    runtime::Argument cotangents[] = {{"scaled", &one}};
    runtime::Destination grads[] = {{"w", &w}, {"b", &b}};
    if (Status status = model.backward(*context, cotangents, grads); !status)
      return status;
    runtime::Argument given[] = {{"w", &w}, {"b", &b}};
    return model.update(given);
  }
  std::vector<float> of(const char *name) { return valuesOf(*model.get(name)); }
  /// Everything that a step writes.
  std::vector<float> state() {
    std::vector<float> all;
    for (const Tensor *tensor : {&loss, &scaled, &pred, &w, &b})
      for (float value : valuesOf(*tensor))
        all.push_back(value);
    for (const char *name : {"w", "b", "steps", "scale"})
      for (float value : of(name))
        all.push_back(value);
    return all;
  }
  /// The gradients of the loss itself, on the host, in double precision.
  std::vector<double> gradients() {
    std::vector<float> xs = valuesOf(x), ys = valuesOf(y), p = valuesOf(pred);
    std::vector<double> sums(4);
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 4; ++j)
        sums[j] += 2. / 8 * (p[i] - ys[i]) * (j < 3 ? xs[i * 3 + j] : 1);
    return sums;
  }
};

class Scaling : public ::testing::Test {
protected:
  void SetUp() override {
    Result<Backend *> opened = runtime::backendOf(emulated);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    backend = *opened;
    stream = *backend->side(20);
  }
  CUstream cu() { return static_cast<CUstream>(stream); }

  Backend *backend = nullptr;
  runtime::Stream stream = nullptr;
};

TEST_F(Scaling, S16_GradientsThatAreUnsetAndAScaleThatChanges) {
  StreamScope scope(emulated, stream);
  Training captured, plain;
  for (int warm = 0; warm < 2; ++warm)
    for (Training *training : {&captured, &plain}) {
      training->setData(warm);
      training->clearGradients();
      ASSERT_EQ(training->run().message(), "");
    }
  ASSERT_EQ(captured.state(), plain.state());
  captured.setData(2);
  captured.clearGradients();
  const void *scale = captured.model.get("scale")->data();

  const cuda::Driver &driver = emulatedDriver();
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  ASSERT_EQ(driver->streamBeginCapture(cu(), CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
  ASSERT_EQ(captured.run().message(), "");
  CUgraph graph = nullptr;
  ASSERT_EQ(driver->streamEndCapture(cu(), &graph), 0);
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_EQ(after.syncs, before.syncs);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.defaultStreamOperations, before.defaultStreamOperations);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(driver->graphInstantiate(&exec, graph, 0), 0);
  const void *w = captured.w.data(), *b = captured.b.data();

  // The third one overflows f16: nothing is updated, and the scale is halved
  // by the replay itself until the numbers fit.
  const float scales[] = {1024, 64, 1 << 20, 0, 0, 0, 0, 0, 0, 16};
  int overflows = 0, step = 2;
  for (float next : scales) {
    SCOPED_TRACE("step " + std::to_string(step));
    for (Training *training : {&captured, &plain}) {
      training->setData(step);
      if (next)
        training->setScale(next);
    }
    std::vector<float> params = captured.of("w");
    float used = captured.of("scale")[0];
    // What others allocate, and write, is not the graph's.
    std::vector<Tensor> others;
    for (int i = 0; i < 8; ++i) {
      others.push_back(tensorOf({1e9f, 1e9f, 1e9f}, {3}));
      EXPECT_NE(others.back().data(), w);
      EXPECT_NE(others.back().data(), b);
    }
    ASSERT_EQ(driver->graphLaunch(exec, cu()), 0);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(valuesOf(others[i]), std::vector<float>(3, 1e9f));
    plain.clearGradients();
    ASSERT_EQ(plain.run().message(), "");
    EXPECT_EQ(captured.state(), plain.state());
    EXPECT_EQ(captured.model.get("scale")->data(), scale);
    EXPECT_EQ(valuesOf(captured.scaled)[0], valuesOf(captured.loss)[0] * used);

    std::vector<float> found = valuesOf(captured.w);
    found.push_back(valuesOf(captured.b)[0]);
    bool isFinite = true;
    for (float value : found)
      isFinite &= std::isfinite(value);
    if (isFinite) {
      std::vector<double> expected = captured.gradients();
      for (int i = 0; i < 4; ++i)
        EXPECT_NEAR(found[i] / used, expected[i],
                    std::abs(expected[i]) / 1024 + 1e-5);
      EXPECT_NE(captured.of("w"), params);
      EXPECT_EQ(captured.of("scale")[0], used);
    } else {
      ++overflows;
      EXPECT_EQ(captured.of("w"), params);
      EXPECT_EQ(captured.of("scale")[0], used / 2);
    }
    ++step;
  }
  EXPECT_GE(overflows, 1);
  EXPECT_LE(overflows, 6); // in the end it fits
  // Gradients that are unset again leave their memory to the graph.
  captured.clearGradients();
  std::vector<Tensor> others;
  for (int i = 0; i < 16; ++i) {
    others.push_back(tensorOf({1e9f, 1e9f, 1e9f}, {3}));
    EXPECT_NE(others.back().data(), w);
    EXPECT_NE(others.back().data(), b);
  }
  ASSERT_EQ(driver->graphLaunch(exec, cu()), 0);
  for (const Tensor &other : others)
    EXPECT_EQ(valuesOf(other), std::vector<float>(3, 1e9f));
  ASSERT_EQ(driver->graphExecDestroy(exec), 0);
  ASSERT_EQ(driver->graphDestroy(graph), 0);
}

} // namespace
