//===- CaptureModelTest.cpp - training steps that a caller captures -------===//
//
// Forward, backward and update of a model, recorded by the caller on a stream
// of its own and replayed.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Control.h"
#include "tests/cuda/OnEmulator.h"
#include "tests/runtime/TestModel.h"

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

/// A model with the tensors of its steps.
struct Training {
  Model model = modelFor(regression());
  Tensor x = sampleX(), y = sampleY(), loss, w, b;

  Training() {
    loss = tensorOf({0}, {});
    w = tensorOf({0, 0, 0}, {3});
    b = tensorOf({0}, {});
  }

  /// Data of step number `step`.
  void setData(int step) {
    std::vector<float> xs = valuesOf(sampleX()), ys = valuesOf(sampleY());
    for (float &value : xs)
      value += 0.1f * static_cast<float>(step);
    EXPECT_TRUE(x.copyFrom(tensorOf(xs, {8, 3})).ok());
    EXPECT_TRUE(y.copyFrom(tensorOf(ys, {8})).ok());
  }
  Status run() {
    runtime::Argument inputs[] = {{"x", &x}, {"y", &y}};
    runtime::Destination outputs[] = {{"loss", &loss}};
    Result<Context> context = model.forward(inputs, outputs);
    if (!context)
      return std::move(context).status();
    runtime::Argument cotangents[] = {{"loss", &one}};
    runtime::Destination grads[] = {{"w", &w}, {"b", &b}};
    if (Status status = model.backward(*context, cotangents, grads); !status)
      return status;
    runtime::Argument given[] = {{"w", &w}, {"b", &b}};
    return model.update(given);
  }
  /// Everything that a step changes.
  std::vector<float> state() {
    std::vector<float> all = valuesOf(loss);
    for (const char *name : {"w", "b", "steps"})
      for (float value : valuesOf(*model.get(name)))
        all.push_back(value);
    return all;
  }
  Tensor one = tensorOf({1}, {});
};

class CaptureModel : public ::testing::Test {
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

// The row's random masks: tests/semantics/RandomTest.cpp.
TEST_F(CaptureModel, S15_AStepIsCapturedAndReplayed) {
  StreamScope scope(emulated, stream);
  Training captured, plain;
  for (int warm = 0; warm < 2; ++warm) {
    captured.setData(warm);
    plain.setData(warm);
    ASSERT_EQ(captured.run().message(), "");
    ASSERT_EQ(plain.run().message(), "");
  }
  ASSERT_EQ(captured.state(), plain.state());

  const cuda::Driver &driver = emulatedDriver();
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  ASSERT_EQ(driver->streamBeginCapture(cu(), CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
  ASSERT_EQ(captured.run().message(), "");
  CUgraph graph = nullptr;
  ASSERT_EQ(driver->streamEndCapture(cu(), &graph), 0);
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_EQ(after.syncs, before.syncs);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.hostAllocations, before.hostAllocations);
  EXPECT_EQ(after.defaultStreamOperations, before.defaultStreamOperations);
  EXPECT_EQ(after.launches, before.launches); // nothing ran
  CUgraphExec exec = nullptr;
  ASSERT_EQ(driver->graphInstantiate(&exec, graph, 0), 0);

  for (int step = 2; step < 5; ++step) {
    captured.setData(step);
    plain.setData(step);
    uint64_t launches = tandemEmulatorGetCounts().launches;
    ASSERT_EQ(driver->graphLaunch(exec, cu()), 0);
    EXPECT_GT(tandemEmulatorGetCounts().launches, launches);
    ASSERT_EQ(plain.run().message(), "");
    EXPECT_EQ(captured.state(), plain.state()) << "step " << step;
  }
  // A step that is not captured goes on from there.
  captured.setData(5);
  plain.setData(5);
  ASSERT_EQ(captured.run().message(), "");
  ASSERT_EQ(plain.run().message(), "");
  EXPECT_EQ(captured.state(), plain.state());
  ASSERT_EQ(driver->graphExecDestroy(exec), 0);
  ASSERT_EQ(driver->graphDestroy(graph), 0);
}

// S17: without warm-up the step would have to make its memory: an error, and
// the next step is right.
TEST_F(CaptureModel, S17_AStepThatWasNotWarmedUp) {
  StreamScope scope(emulated, stream);
  Training captured, plain;
  captured.setData(0);
  plain.setData(0);
  const cuda::Driver &driver = emulatedDriver();
  ASSERT_EQ(backend->synchronize(stream).message(), "");
  ASSERT_EQ(driver->streamBeginCapture(cu(), CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
  Status status = captured.run();
  // Reading a value waits on the host.
  if (status.ok())
    status = backend->synchronize(stream);
  EXPECT_FALSE(status.ok());
  CUgraph graph = nullptr;
  EXPECT_NE(driver->streamEndCapture(cu(), &graph), 0) << status.message();
  EXPECT_EQ(graph, nullptr);
  ASSERT_EQ(captured.run().message(), "");
  ASSERT_EQ(plain.run().message(), "");
  EXPECT_EQ(captured.state(), plain.state());
}

// A model that ends while a stream is captured, its own or another, neither
// ends the capture nor takes away what its runs use.
TEST_F(CaptureModel, AModelEndsBesideACapture) {
  const cuda::Driver &driver = emulatedDriver();
  for (int number : {20, 21}) {
    auto recorder = static_cast<CUstream>(*backend->side(number));
    StreamScope scope(emulated, stream);
    auto model = std::make_unique<Training>();
    model->setData(0);
    ASSERT_EQ(model->run().message(), "");
    Tensor gradient = model->w, kept = *gradient.copyTo(emulated);
    tandemEmulatorDelay(stream, 1'000'000);
    ASSERT_EQ(model->run().message(), "");
    ASSERT_EQ(
        driver->streamBeginCapture(recorder, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    model.reset();
    CUgraph graph = nullptr;
    EXPECT_EQ(driver->streamEndCapture(recorder, &graph), 0) << number;
    if (graph)
      driver->graphDestroy(graph);
    EXPECT_NE(valuesOf(gradient), valuesOf(kept)); // of two steps
  }
}

} // namespace
