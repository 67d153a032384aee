//===- MemoryTest.cpp - a step needs the memory that was planned ----------===//
//
// The runtime charges every allocation of a model to its account. After steps
// and calls of all kinds its peak is what the plan of the step said, beside
// what the plan leaves out: the caller's own tensors, constants of host code,
// which lie in the artifact, and scratch memory of host kernels.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/PlannedMemory.h"
#include "tests/semantics/Harness.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;
using artifact::Role;

namespace {

class Memory : public RowTest {
protected:
  /// Checks the peak of a model whose arena and scratch memory serve the
  /// programs `used`.
  static void expectPlanned(const CompiledMachine &m,
                            std::initializer_list<const char *> used) {
    const artifact::Manifest &manifest = m.model.manifest();
    ASSERT_TRUE(manifest.stepMemory);
    const artifact::StepMemory &plan = *manifest.stepMemory;
    int64_t expected = plan.peak() - plan.inputs;
    if (m.model.device().isHost()) {
      expected -= plan.constants;
      int64_t scratch = 0;
      for (const char *name : used)
        scratch = std::max(scratch, artifact::scratchOfThread(
                                        manifest, *manifest.findProgram(name)));
      expected += scratch * m.model.threads();
    }
    EXPECT_EQ(m.model.memory().peak, expected)
        << "parameters " << plan.parameters << ", states " << plan.states
        << ", outputs " << plan.outputs << ", gradients " << plan.gradients
        << ", saved " << plan.saved << ", staged " << plan.staged << ", arena "
        << plan.arena;
  }

  static void setInputs(CompiledMachine &m) {
    for (const artifact::Value &value : m.model.manifest().values) {
      if (value.role != Role::Input)
        continue;
      int64_t count = 1;
      for (int64_t size : value.shape)
        count *= size;
      Numbers numbers;
      for (int64_t i = 0; i < count; ++i)
        numbers.push_back(value.dtype == DType::I64
                              ? static_cast<double>(i % 3)
                              : static_cast<double>(i * 37 % 19) / 19 - 0.5);
      m.set(value.name, numbers);
    }
  }

  /// Trains with the program `step`.
  void expectPlannedSteps(const std::function<void(Trace &)> &trace,
                          const std::string &optimizer) {
    CompileOptions options;
    options.optimizer = optimizer;
    auto m = compiled({nullptr, trace}, options);
    ASSERT_TRUE(m);
    setInputs(*m);
    const artifact::Program *step = m->model.manifest().findProgram("step");
    std::vector<runtime::Argument> inputs;
    for (const artifact::Slot &slot : step->arguments)
      if (slot.role == Role::Input)
        inputs.push_back({slot.name, &m->tensors[slot.name]});
    std::map<std::string, runtime::Tensor> outputs;
    std::vector<runtime::Destination> destinations;
    for (const artifact::Slot &slot : step->results)
      if (slot.role == Role::Output)
        destinations.push_back({slot.name, &outputs[slot.name]});
    for (int i = 0; i < 3; ++i) {
      Status status = m->model.step(inputs, destinations);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    expectPlanned(*m, {"step"});
  }

  /// Forward and backward, with the gradients in new tensors.
  void expectPlannedCalls(const std::function<void(Trace &)> &trace,
                          const NamedNumbers &cotangents) {
    auto m = compiled({nullptr, trace});
    ASSERT_TRUE(m);
    setInputs(*m);
    for (int i = 0; i < 3; ++i) {
      // Nothing of the last step is kept.
      m->outputTensors.clear();
      m->gradTensors.clear();
      ASSERT_EQ(m->forward(), "");
      ASSERT_EQ(m->backward(cotangents), "");
    }
    expectPlanned(*m, {"forward", "backward"});
  }
};

void perceptron(Trace &t) {
  Tensor x = t.input("x", {8, 40});
  Tensor labels = t.input("labels", {8}, DType::I64, {.high = 3});
  Tensor w = t.parameter("w", {16, 40}, Init::uniform(-0.4, 0.4));
  Tensor b = t.parameter("b", {16}, Init::uniform(-0.4, 0.4));
  Tensor v = t.parameter("v", {3, 16}, Init::uniform(-0.4, 0.4));
  Tensor logits = linear(gelu(linear(x, w, b)), v);
  t.output("logits", logits);
  t.output("loss", crossEntropy(logits, labels));
}

/// Statistics that are updated, a convolution.
void convolution(Trace &t) {
  Tensor x = t.input("x", {4, 3, 8, 8});
  Tensor w = t.parameter("w", {8, 3, 3, 3}, Init::uniform(-0.4, 0.4));
  Tensor scale = t.parameter("scale", {8}, Init::constant(1));
  Tensor bias = t.parameter("bias", {8}, Init::constant(0));
  Tensor center = t.state("mean", {8}, Init::constant(0));
  Tensor variance = t.state("variance", {8}, Init::constant(1));
  Tensor y = batchNorm(conv2d(x, w), scale, bias, center, variance);
  t.output("loss", mean(relu(y)));
}

/// A table that is used twice.
void tied(Trace &t) {
  Tensor x = t.input("x", {6}, DType::I64, {.high = 3});
  Tensor table = t.parameter("table", {20, 8}, Init::uniform(-0.4, 0.4));
  Tensor h = tanh(embedding(table, x));
  t.output("loss", crossEntropy(linear(h, table), x));
}

/// Two states that change places: one of them must be copied.
void exchange(Trace &t) {
  Tensor x = t.input("x", {200}, DType::F32, {.requiresGrad = true});
  Tensor w = t.parameter("w", {200}, Init::uniform(-0.4, 0.4));
  Tensor a = t.state("a", {200}, Init::constant(1));
  Tensor b = t.state("b", {200}, Init::constant(2));
  Tensor old = a * 2.0;
  a.copy_(b * x);
  b.copy_(old);
  t.output("loss", mean(sin(w * x) * old));
}

} // namespace

TANDEM_WAYS(Memory, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Memory, P10_AStepNeedsWhatWasPlanned) {
  expectPlannedSteps(perceptron, "adamw:lr=1e-2");
  expectPlannedSteps(convolution, "momentum:lr=1e-2");
  expectPlannedSteps(tied, "sgd:lr=1e-2");
  expectPlannedSteps(exchange, "sgd:lr=1e-2");
}

TEST_P(Memory, P10_ForwardAndBackwardNeedWhatWasPlanned) {
  expectPlannedCalls(perceptron, {{"loss", {1}}});
  expectPlannedCalls(convolution, {{"loss", {1}}});
  expectPlannedCalls(tied, {{"loss", {1}}});
  expectPlannedCalls(exchange, {{"loss", {1}}});
}
