//===- ThousandStepsTest.cpp - many steps leave nothing behind ------------===//
//
// A thousand training steps on the emulated device, as one graph each and
// kernel by kernel: no race, no access out of bounds, no memory that grows, and
// nothing asked of the driver that a step does not need.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Control.h"
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;

namespace {

class Steps : public RowTest {
protected:
  /// A small model with an optimizer that keeps states, compiled for cuda.
  std::unique_ptr<CompiledMachine> model() {
    Source source{
        nullptr, [](Trace &t) {
          Tensor x = t.input("x", {8, 6});
          Tensor labels = t.input("labels", {8}, DType::I64, {.high = 3});
          Tensor w = t.parameter("w", {16, 6}, Init::uniform(-0.4, 0.4));
          Tensor v = t.parameter("v", {3, 16}, Init::uniform(-0.4, 0.4));
          Tensor logits = linear(gelu(linear(x, w)), v);
          t.output("loss", crossEntropy(logits, labels));
        }};
    CompileOptions options;
    options.optimizer = "adamw:lr=1e-2";
    return compiled(source, options);
  }
};

} // namespace

TANDEM_WAYS(Steps, Way{true, Runner::Cuda});

TEST_P(Steps, AThousandLeaveNothingBehind) {
  auto m = model();
  ASSERT_TRUE(m);
  Numbers xs(48), labels(8);
  for (size_t i = 0; i < xs.size(); ++i)
    xs[i] = static_cast<double>((i * 37) % 19) / 19 - 0.5;
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<double>(i % 3);
  m->set("x", xs);
  m->set("labels", labels);
  runtime::Argument inputs[] = {{"x", &m->tensors["x"]},
                                {"labels", &m->tensors["labels"]}};
  runtime::Tensor loss = *runtime::Tensor::zeros(
      DType::F32, std::span<const int64_t>(), m->model.device());
  runtime::Destination outputs[] = {{"loss", &loss}};
  auto step = [&] {
    Status status = m->model.step(inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.message();
  };
  for (int warm = 0; warm < 3; ++warm)
    step();
  double first = numbersOf(loss)[0];
  ASSERT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorError(0);
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  size_t allocations = tandemEmulatorLiveAllocations();
  size_t bytes = tandemEmulatorLiveBytes();
  size_t events = tandemEmulatorLiveHandles("event");
  for (int i = 0; i < 1000; ++i)
    step();
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.hostAllocations, before.hostAllocations);
  EXPECT_EQ(after.graphInstantiations, before.graphInstantiations);
  EXPECT_EQ(after.graphLaunches, before.graphLaunches + 1000);
  EXPECT_EQ(after.syncs, before.syncs);
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorError(0);
  EXPECT_EQ(tandemEmulatorLiveAllocations(), allocations);
  EXPECT_EQ(tandemEmulatorLiveBytes(), bytes);
  EXPECT_EQ(tandemEmulatorLiveHandles("event"), events);
  EXPECT_LT(numbersOf(loss)[0], 0.5 * first); // it learned

  // What the model had is kept for the next one.
  loss = {};
  m.reset();
  m = model();
  ASSERT_TRUE(m);
  EXPECT_LE(tandemEmulatorLiveBytes(), bytes);
}
