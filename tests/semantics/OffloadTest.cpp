//===- OffloadTest.cpp - saved values in the host's memory ----------------===//
//
// A program whose saved values are offloaded computes the same bits as without:
// as a step, as forward and backward, kernel by kernel and as a graph, captured
// by its caller, twice from one context, and differentiated once more. It needs
// what was planned, which is less on the device by what is on the host; and
// many steps ask for no memory. The emulator finds no race meanwhile.
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"
#include "cuda/emulator/Control.h"
#include "runtime/device/Backend.h"
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;
using artifact::Role;

namespace {

enum class Keep { Unsaid, Offload };

/// Layers of one size, whose values are the larger part of what is saved.
Source layers(Keep keep, int count = 4) {
  return {nullptr, [keep, count](Trace &t) {
            auto kept = [&](const Tensor &x) {
              return keep == Keep::Offload ? t.offload(x) : t.save(x);
            };
            Tensor h = t.input("x", {32, 24});
            Tensor labels = t.input("labels", {32}, DType::I64, {.high = 3});
            for (int i = 0; i < count; ++i) {
              Tensor w = t.parameter("w" + std::to_string(i), {24, 24},
                                     Init::uniform(-0.4, 0.4));
              h = kept(sin(kept(matmul(h, w))));
            }
            Tensor v = t.parameter("v", {3, 24}, Init::uniform(-0.4, 0.4));
            t.output("loss", crossEntropy(linear(h, v), labels));
          }};
}

/// Products and functions, element by element.
Source chain(Keep keep) {
  return {nullptr, [keep](Trace &t) {
            auto kept = [&](const Tensor &x) {
              return keep == Keep::Offload ? t.offload(x) : t.save(x);
            };
            Tensor h = t.input("x", {32, 24});
            for (const char *name : {"w", "v"})
              h = kept(sin(
                  kept(h * t.parameter(name, {32, 24}, Init::uniform(-1, 1)))));
            t.output("loss", mean(exp(h)));
          }};
}

CompileOptions trained() {
  CompileOptions options;
  options.optimizer = "adamw:lr=1e-2";
  return options;
}

class Offload : public RowTest {
protected:
  static void setInputs(CompiledMachine &m) {
    Numbers xs(32 * 24), labels(32);
    for (size_t i = 0; i < xs.size(); ++i)
      xs[i] = static_cast<double>(i * 37 % 19) / 19 - 0.5;
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<double>(i % 3);
    m.set("x", xs);
    m.set("labels", labels);
  }
  std::unique_ptr<CompiledMachine>
  model(const Source &source, const CompileOptions &options = {}) const {
    auto m = compiled(source, options);
    if (m)
      setInputs(*m);
    return m;
  }

  /// The loss of each of some steps, then all params.
  static Numbers train(CompiledMachine &m, int steps) {
    runtime::Argument inputs[] = {{"x", &m.tensors["x"]},
                                  {"labels", &m.tensors["labels"]}};
    Numbers numbers;
    for (int i = 0; i < steps; ++i) {
      runtime::Tensor loss;
      runtime::Destination outputs[] = {{"loss", &loss}};
      Status status = m.model.step(inputs, outputs);
      EXPECT_TRUE(status.ok()) << status.message();
      for (double number : numbersOf(loss))
        numbers.push_back(number);
    }
    for (const artifact::Value &value : m.model.manifest().values)
      if (value.role == Role::Param)
        for (double number : numbersOf(*m.model.get(value.name)))
          numbers.push_back(number);
    return numbers;
  }

  /// What the step's plan says, and that the model holds just that.
  static artifact::StepMemory expectPlanned(const CompiledMachine &m) {
    const artifact::StepMemory &plan = *m.model.manifest().stepMemory;
    EXPECT_EQ(m.model.memory().peak, plan.peak() - plan.inputs);
    EXPECT_EQ(m.model.memory().host, plan.host);
    return plan;
  }

  static size_t copiesIn(const CompiledMachine &m, const char *program) {
    size_t count = 0;
    for (const artifact::Launch &launch :
         m.model.manifest().findProgram(program)->launches)
      count += launch.isCopy();
    return count;
  }

  static void expectNoErrors() {
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorError(0);
  }
};

} // namespace

TANDEM_WAYS(Offload, Way{true, Runner::Cuda});

TEST_P(Offload, TheSameStepsInLessMemory) {
  auto plain = model(layers(Keep::Unsaid), trained());
  auto away = model(layers(Keep::Offload), trained());
  ASSERT_TRUE(plain && away);
  // Each value goes and comes back, but for the last, which need not go.
  EXPECT_EQ(copiesIn(*plain, "step"), 0u);
  size_t copies = copiesIn(*away, "step");
  EXPECT_TRUE(copies % 2 == 0 && copies >= 10 && copies < 16) << copies;
  EXPECT_EQ(train(*away, 5), train(*plain, 5));
  artifact::StepMemory with = expectPlanned(*away),
                       without = expectPlanned(*plain);
  EXPECT_EQ(without.host, 0);
  EXPECT_GE(with.host, 5 * 32 * 24 * 4);
  EXPECT_LE(with.peak(), without.peak() - 3 * 32 * 24 * 4);
  expectNoErrors();
}

TEST_P(Offload, TheSameGradientsInLessMemory) {
  auto plain = model(layers(Keep::Unsaid));
  auto away = model(layers(Keep::Offload));
  ASSERT_TRUE(plain && away);
  EXPECT_EQ(copiesIn(*away, "forward"), 8u);
  EXPECT_EQ(copiesIn(*away, "backward"), 8u);
  for (int i = 0; i < 3; ++i)
    for (CompiledMachine *m : {plain.get(), away.get()}) {
      m->outputTensors.clear();
      m->gradTensors.clear();
      ASSERT_EQ(m->forward(), "");
      ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    }
  EXPECT_EQ(away->outputs, plain->outputs);
  EXPECT_EQ(away->gradients, plain->gradients);
  ASSERT_EQ(away->gradients.size(), 5u);
  artifact::StepMemory with = expectPlanned(*away),
                       without = expectPlanned(*plain);
  EXPECT_EQ(with.host, 8 * 32 * 24 * 4);
  EXPECT_EQ(with.saved, without.saved - with.host);
  EXPECT_LT(with.peak(), without.peak());
  expectNoErrors();
}

// What is queued for copies still runs when the next call begins.
TEST_P(Offload, TheSameWheneverCopiesRun) {
  Numbers expected;
  for (const char *policy : {"eager", "lazy", "others-first", "random:3"}) {
    tandemEmulatorSetPolicy(policy);
    auto m = model(layers(Keep::Offload), trained());
    ASSERT_TRUE(m);
    ASSERT_EQ(m->forward(), "");
    runtime::Context first = std::move(m->context);
    Numbers steps = train(*m, 3);
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    Numbers gradient = m->gradients["w0"];
    steps.insert(steps.end(), gradient.begin(), gradient.end());
    if (expected.empty())
      expected = steps;
    EXPECT_EQ(steps, expected) << policy;
    expectNoErrors();
  }
  tandemEmulatorSetPolicy("eager");
}

TEST_P(Offload, AHundredStepsAskForNothing) {
  auto m = model(layers(Keep::Offload), trained());
  ASSERT_TRUE(m);
  runtime::Tensor loss = *runtime::Tensor::zeros(
      DType::F32, std::span<const int64_t>(), m->model.device());
  runtime::Argument inputs[] = {{"x", &m->tensors["x"]},
                                {"labels", &m->tensors["labels"]}};
  runtime::Destination outputs[] = {{"loss", &loss}};
  std::map<std::string, runtime::Tensor> grads;
  std::vector<runtime::Destination> gradients;
  for (const artifact::Slot &slot :
       m->model.manifest().findProgram("backward")->results)
    gradients.push_back(
        {slot.name, &(grads[slot.name] = *runtime::Tensor::zeros(
                          slot.dtype, slot.shape, m->model.device()))});
  runtime::Tensor one = *runtime::Tensor::zeros(
      DType::F32, std::span<const int64_t>(), m->model.device());
  ASSERT_TRUE(one.fill(1).ok());
  runtime::Argument cotangents[] = {{"loss", &one}};
  auto step = [&](bool isWhole) {
    if (isWhole) {
      Status status = m->model.step(inputs, outputs);
      ASSERT_TRUE(status.ok()) << status.message();
      return;
    }
    auto context = m->model.forward(inputs, outputs);
    ASSERT_TRUE(context.ok()) << context.status().message();
    Status status = m->model.backward(*context, cotangents, gradients);
    ASSERT_TRUE(status.ok()) << status.message();
  };
  for (bool isWhole : {true, false}) {
    for (int warm = 0; warm < 3; ++warm)
      step(isWhole);
    TandemEmulatorCounts before = tandemEmulatorGetCounts();
    size_t bytes = tandemEmulatorLiveBytes();
    for (int i = 0; i < 100; ++i)
      step(isWhole);
    TandemEmulatorCounts after = tandemEmulatorGetCounts();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.hostAllocations, before.hostAllocations);
    EXPECT_EQ(after.syncs, before.syncs);
    EXPECT_EQ(after.graphInstantiations, before.graphInstantiations);
    EXPECT_GE(after.copies, before.copies + 1000);
    EXPECT_EQ(tandemEmulatorLiveBytes(), bytes);
  }
  expectNoErrors();
}

TEST_P(Offload, ACallerCapturesAStep) {
  using namespace cuda::driver;
  auto plain = model(layers(Keep::Unsaid), trained());
  auto away = model(layers(Keep::Offload), trained());
  ASSERT_TRUE(plain && away);
  runtime::Device device = away->model.device();
  auto backend = runtime::backendOf(device);
  ASSERT_TRUE(backend.ok());
  runtime::Stream stream = *(*backend)->side(20);
  auto cu = static_cast<CUstream>(stream);
  auto driver = cuda::Driver::open(TANDEM_EMULATOR);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  CUcontext context = nullptr;
  ASSERT_EQ((*driver)->devicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ((*driver)->ctxSetCurrent(context), CUDA_SUCCESS);
  {
    runtime::StreamScope scope(device, stream);
    runtime::Tensor loss =
        *runtime::Tensor::zeros(DType::F32, std::span<const int64_t>(), device);
    runtime::Argument inputs[] = {{"x", &away->tensors["x"]},
                                  {"labels", &away->tensors["labels"]}};
    runtime::Destination outputs[] = {{"loss", &loss}};
    ASSERT_TRUE(away->model.step(inputs, outputs).ok());
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ((*driver)->streamBeginCapture(cu, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    Status status = away->model.step(inputs, outputs);
    ASSERT_EQ((*driver)->streamEndCapture(cu, &graph), CUDA_SUCCESS);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ((*driver)->graphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ((*driver)->graphLaunch(exec, cu), CUDA_SUCCESS);
    ASSERT_TRUE((*backend)->synchronize(stream).ok());
    (*driver)->graphExecDestroy(exec);
    (*driver)->graphDestroy(graph);
  }
  // A step, and three that were replayed.
  Numbers expected = train(*plain, 5), actual = train(*away, 1);
  EXPECT_EQ(actual.front(), expected[4]);
  expected.erase(expected.begin(), expected.begin() + 4);
  EXPECT_EQ(actual, expected);
  expectNoErrors();
}

TEST_P(Offload, TwiceFromOneContext) {
  auto plain = model(layers(Keep::Unsaid));
  auto away = model(layers(Keep::Offload));
  ASSERT_TRUE(plain && away);
  for (CompiledMachine *m : {plain.get(), away.get()}) {
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"loss", {2}}}, {.retainGraph = true}), "");
    ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    EXPECT_NE(m->backward({{"loss", {1}}}), "");
  }
  EXPECT_EQ(away->gradients, plain->gradients);
  expectNoErrors();
}

// The input of the first layer is read by reference, beside what is offloaded.
TEST_P(Offload, WhatIsOverwrittenIsSeen) {
  auto m = model(layers(Keep::Offload));
  ASSERT_TRUE(m);
  ASSERT_EQ(m->forward(), "");
  ASSERT_TRUE(m->tensors["x"].fill(0).ok());
  EXPECT_PART(m->backward({{"loss", {1}}}), "'x'");
  setInputs(*m);
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->backward({{"loss", {1}}}), "");
}

TEST_P(Offload, DifferentiatedOnceMore) {
  CompileOptions options;
  options.order = 2;
  std::vector<NamedNumbers> all;
  for (Keep keep : {Keep::Unsaid, Keep::Offload}) {
    auto m = compiled(chain(keep), options);
    ASSERT_TRUE(m);
    Numbers xs(32 * 24);
    for (size_t i = 0; i < xs.size(); ++i)
      xs[i] = static_cast<double>(i * 37 % 19) / 19 - 0.5;
    m->set("x", xs);
    ASSERT_EQ(m->forward(), "");
    std::map<std::string, runtime::Tensor> first, second;
    std::vector<runtime::Destination> grads, more;
    runtime::Tensor one = *runtime::Tensor::zeros(
        DType::F32, std::span<const int64_t>(), m->model.device());
    ASSERT_TRUE(one.fill(1).ok());
    runtime::Argument cotangents[] = {{"loss", &one}};
    const artifact::Manifest &manifest = m->model.manifest();
    for (const artifact::Slot &slot :
         manifest.findProgram("grad_forward")->results)
      if (slot.role == Role::Grad)
        grads.push_back({slot.name, &first[slot.name]});
    runtime::Context graph;
    Status status = m->model.backward(m->context, cotangents, grads,
                                      {.createGraph = true}, &graph);
    ASSERT_TRUE(status.ok()) << status.message();
    const artifact::Program &last = *manifest.findProgram("grad_backward");
    for (const artifact::Slot &slot : last.results)
      if (slot.role == Role::Grad)
        more.push_back({slot.name, &second[slot.name]});
    std::vector<runtime::Argument> above;
    for (const artifact::Slot &slot : last.arguments)
      if (slot.role == Role::Cotangent && slot.name.starts_with("grad of "))
        above.push_back({slot.name, &first[slot.name.substr(8)]});
    status = m->model.backward(graph, above, more);
    ASSERT_TRUE(status.ok()) << status.message();
    NamedNumbers &numbers = all.emplace_back();
    for (auto &[name, tensor] : first)
      numbers["grad of " + name] = numbersOf(tensor);
    for (auto &[name, tensor] : second)
      if (tensor.defined())
        numbers[name] = numbersOf(tensor);
    EXPECT_EQ(copiesIn(*m, "forward") > 0, keep == Keep::Offload);
    EXPECT_EQ(copiesIn(*m, "grad_forward") > 0, keep == Keep::Offload);
  }
  EXPECT_EQ(all[0], all[1]);
  expectNoErrors();
}

// Hooks get what is on the host there, and may give it back from anywhere.
TEST_P(Offload, Hooks) {
  auto m = model(layers(Keep::Offload));
  ASSERT_TRUE(m);
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  NamedNumbers expected = m->gradients;
  for (bool onDevice : {false, true}) {
    int fromHost = 0;
    auto hooks = std::make_shared<runtime::SavedHooks>();
    hooks->pack =
        [&](std::string_view,
            const runtime::Tensor &value) -> Result<std::shared_ptr<void>> {
      fromHost += value.device().isHost();
      auto copy =
          value.copyTo(onDevice ? m->model.device() : runtime::Device{});
      if (!copy)
        return std::move(copy).status();
      return std::shared_ptr<void>(
          std::make_shared<runtime::Tensor>(std::move(*copy)));
    };
    hooks->unpack =
        [](std::string_view,
           const std::shared_ptr<void> &packed) -> Result<runtime::Tensor> {
      return *static_cast<runtime::Tensor *>(packed.get());
    };
    runtime::Argument inputs[] = {{"x", &m->tensors["x"]},
                                  {"labels", &m->tensors["labels"]}};
    auto context = m->model.forward(inputs, {}, hooks);
    ASSERT_TRUE(context.ok()) << context.status().message();
    EXPECT_EQ(fromHost, 8);
    m->context = std::move(*context);
    ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    EXPECT_EQ(m->gradients, expected);
  }
  expectNoErrors();
}
