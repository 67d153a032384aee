//===- RandomTest.cpp - random numbers in both passes: rows P14, S15 ------===//
//
// The masks that are expected are the generator's own (ir/ops/Philox.h).
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Harness.h"

#include "cuda/Driver.h"
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"
#include "ir/ops/Philox.h"
#include "runtime/device/Backend.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::cuda::driver;

namespace {

class Recompute : public RowTest {};
class RecomputeCalls : public RowTest {};
class Replay : public RowTest {};

constexpr int64_t kElements = 6 * 40;
constexpr double kP = 0.4;

/// o = dropout(x), twice over: two draws of one program.
Source dropouts() {
  return {
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: tensor<6x40xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %random: !tandem.ref<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
        -> (tensor<6x40xf32> {tandem.role = #tandem.role<output "o">}) {
      %s = tandem.read %random : !tandem.ref<2xi64>
      %a = tandem.dropout %x, %s draw 0 p 0.4 {training} : tensor<6x40xf32>
      %o = tandem.dropout %a, %s draw 1 p 0.4 {training} : tensor<6x40xf32>
      %i = tandem.iota dim 0 : tensor<2xi64>
      %next = tandem.add %s, %i : tensor<2xi64>
      tandem.write %next into %random : tensor<2xi64>, !tandem.ref<2xi64>
      return %o : tensor<6x40xf32>
    }})",
      [](Trace &t) {
        Tensor x = t.input("x", {6, 40}, DType::F32, {.requiresGrad = true});
        t.output("o", dropout(dropout(x, kP), kP));
      }};
}

/// What `dropouts` multiplies its elements by.
Numbers masks(uint64_t seed, uint64_t offset) {
  Numbers numbers;
  for (int64_t i = 0; i < kElements; ++i) {
    bool dropped = false;
    for (int64_t draw : {0, 1})
      dropped |= random::uniform(seed, offset, i, draw, 24) < float(kP);
    numbers.push_back(dropped ? 0 : 1 / (1 - kP) / (1 - kP));
  }
  return numbers;
}

const Numbers kOnes(kElements, 1.0);

testing::AssertionResult areMasks(const std::optional<Numbers> &numbers,
                                  uint64_t seed, uint64_t offset) {
  return areNear("the mask", "", numbers, masks(seed, offset));
}

} // namespace
TANDEM_ALL_WAYS(Recompute);
TANDEM_WAYS(RecomputeCalls, TANDEM_TEXT_AND_TRACED(Cpu),
            TANDEM_TEXT_AND_TRACED(Cuda));
TANDEM_WAYS(Replay, TANDEM_TEXT_AND_TRACED(Cuda));

//===----------------------------------------------------------------------===//
// P13, P14
//===----------------------------------------------------------------------===//

TEST_P(Recompute, P14_TheBackwardHasTheMaskOfItsForward) {
  auto m = start(dropouts());
  ASSERT_TRUE(m);
  m->set("x", kOnes);
  m->set("random", {7, 20});
  for (uint64_t call = 20; call < 23; ++call) {
    ASSERT_EQ(m->forward(), "");
    EXPECT_TRUE(areMasks(m->output("o"), 7, call));
    // The state has moved on before the backward runs.
    EXPECT_NUMBERS(m->contents("random"), {7, double(call + 1)});
    ASSERT_EQ(m->backward({{"o", kOnes}}), "");
    EXPECT_TRUE(areMasks(m->gradient("x"), 7, call));
    // P13: the very bits.
    if (isCompiled()) {
      EXPECT_EQ(m->gradient("x"), m->output("o"));
    }
  }
}

TEST_P(RecomputeCalls, P14_NoMaskIsSaved) {
  std::string text = printed(dropouts(), "partition");
  EXPECT_EQ(count(text, "{tandem.role = #tandem.role<saved"), 2) << text;
  EXPECT_EQ(
      count(text, "tensor<2xi64> {tandem.role = #tandem.role<saved \"random\""),
      2)
      << text;
  // Both draws, in both programs.
  EXPECT_EQ(count(text, "= tandem.philox"), 4) << text;
}

TEST_P(RecomputeCalls, P14_TwoContextsKeepTheirOwn) {
  auto m = compiled(dropouts());
  ASSERT_TRUE(m);
  m->set("x", kOnes);
  m->set("random", {3, 0});
  auto first = m->forwardContext(), second = m->forwardContext();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NUMBERS(m->contents("random"), {3, 2});
  auto gradient = [&](runtime::Context &context, bool retain) {
    runtime::Tensor one = tensorOf(DType::F32, {6, 40}, kOnes), dx;
    runtime::Argument cotangents[] = {{"o", &one}};
    runtime::Destination grads[] = {{"x", &dx}};
    Status status =
        m->model.backward(context, cotangents, grads, {.retainGraph = retain});
    EXPECT_TRUE(status.ok()) << status.message();
    return numbersOf(dx);
  };
  EXPECT_TRUE(areMasks(gradient(*second, true), 3, 1));
  EXPECT_TRUE(areMasks(gradient(*first, true), 3, 0));
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(areMasks(gradient(*second, true), 3, 1));
  EXPECT_TRUE(areMasks(gradient(*first, false), 3, 0));
  EXPECT_TRUE(areMasks(gradient(*second, false), 3, 1));
  ASSERT_EQ(m->backward({{"o", kOnes}}), "");
  EXPECT_TRUE(areMasks(m->gradient("x"), 3, 2));
}

TEST_P(RecomputeCalls, G08_P14_TheSeedOfTheRun) {
  auto m = compiled(dropouts());
  ASSERT_TRUE(m);
  m->set("x", kOnes);
  for (uint64_t seed : {5, 6}) {
    ASSERT_TRUE(m->model.initialize(seed).ok());
    ASSERT_EQ(m->forward(), "");
    EXPECT_TRUE(areMasks(m->output("o"), seed, 0));
  }
}

TEST_P(RecomputeCalls, G08_EvaluationDropsNothing) {
  auto m = compiled(dropouts());
  ASSERT_TRUE(m);
  m->set("x", kOnes);
  m->set("random", {3, 9});
  runtime::Tensor o;
  runtime::Argument inputs[] = {{"x", &m->tensors["x"]}};
  runtime::Destination outputs[] = {{"o", &o}};
  Status status = m->model.run("evaluate", inputs, outputs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(numbersOf(o), kOnes);
  EXPECT_NUMBERS(m->contents("random"), {3, 9});
}

TEST_P(Recompute, DropoutOfNothingAndOfAll) {
  auto source = [](const char *text, double p) {
    return Source{text, [p](Trace &t) {
                    Tensor x =
                        t.input("x", {2}, DType::F32, {.requiresGrad = true});
                    t.output("o", dropout(x, p) * 3.0);
                  }};
  };
#define TANDEM_ONE_DROPOUT(P)                                                  \
  R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %s: tensor<2xi64> {tandem.role = #tandem.role<state "random" {init = {kind = "seed"}}>})
        -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
      %a = tandem.dropout %x, %s draw 0 p )" P R"( {training} : tensor<2xf32>
      %3 = tandem.constant dense<3.0> : tensor<2xf32>
      %o = tandem.mul %a, %3 : tensor<2xf32>
      return %o : tensor<2xf32>
    }})"
  for (double p : {0.0, 1.0}) {
    auto m = start(source(
        p == 0 ? TANDEM_ONE_DROPOUT("0.0") : TANDEM_ONE_DROPOUT("1.0"), p));
    ASSERT_TRUE(m);
    m->set("x", {5, -7});
    // Where nothing is dropped the tracer draws nothing.
    if (!isTraced() || p == 1)
      m->set("random", {0, 0});
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
    if (p == 0) {
      EXPECT_NUMBERS(m->output("o"), {15, -21});
      EXPECT_NUMBERS(m->gradient("x"), {3, 30});
    } else {
      EXPECT_NUMBERS(m->output("o"), {0, 0});
      EXPECT_NUMBERS(m->gradient("x"), {0, 0});
    }
  }
}

//===----------------------------------------------------------------------===//
// S15
//===----------------------------------------------------------------------===//

namespace {

/// A forward and a backward on the device.
struct Passes {
  explicit Passes(CompiledMachine &machine) : model(machine.model) {
    auto there = [&](const Numbers &numbers) {
      return *tensorOf(DType::F32, {6, 40}, numbers).copyTo(model.device());
    };
    x = there(kOnes), one = there(kOnes);
    o = there(kOnes), dx = there(kOnes);
    EXPECT_TRUE(x.setRequiresGrad(true).ok());
    EXPECT_TRUE(model.initialize(4).ok());
  }
  std::string run() {
    runtime::Argument inputs[] = {{"x", &x}};
    runtime::Destination outputs[] = {{"o", &o}};
    auto context = model.forward(inputs, outputs);
    if (!context)
      return context.status().message();
    runtime::Argument cotangents[] = {{"o", &one}};
    runtime::Destination grads[] = {{"x", &dx}};
    return model.backward(*context, cotangents, grads).message();
  }

  runtime::Model &model;
  runtime::Tensor x, one, o, dx;
};

} // namespace

TEST_P(Replay, S15_EachReplayDrawsAnew) {
  auto machine = compiled(dropouts()), other = compiled(dropouts());
  ASSERT_TRUE(machine && other);
  auto device = machine->model.device();
  auto backend = runtime::backendOf(device);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  runtime::Stream stream = *(*backend)->side(20);
  runtime::StreamScope scope(device, stream);
  Passes captured(*machine), plain(*other);
  // Queued one by one in the one, as the runtime's own graphs in the other.
  uint64_t offset = 0;
  for (; offset < 2; ++offset) {
    ASSERT_EQ(captured.run(), "");
    ASSERT_EQ(plain.run(), "");
  }
  auto driver = cuda::Driver::open(TANDEM_EMULATOR);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  CUcontext context = nullptr;
  ASSERT_EQ((*driver)->devicePrimaryCtxRetain(&context, 0), 0);
  ASSERT_EQ((*driver)->ctxSetCurrent(context), 0);
  auto *cu = static_cast<CUstream>(stream);
  ASSERT_EQ((*driver)->streamBeginCapture(cu, CU_STREAM_CAPTURE_MODE_GLOBAL),
            0);
  ASSERT_EQ(captured.run(), "");
  CUgraph graph = nullptr;
  ASSERT_EQ((*driver)->streamEndCapture(cu, &graph), 0);
  CUgraphExec exec = nullptr;
  ASSERT_EQ((*driver)->graphInstantiate(&exec, graph, 0), 0);
  for (; offset < 5; ++offset) {
    ASSERT_EQ((*driver)->graphLaunch(exec, cu), 0);
    ASSERT_EQ(plain.run(), "");
    EXPECT_TRUE(areMasks(numbersOf(captured.o), 4, offset));
    EXPECT_EQ(numbersOf(captured.dx), numbersOf(captured.o));
    EXPECT_EQ(numbersOf(plain.o), numbersOf(captured.o));
    EXPECT_EQ(numbersOf(plain.dx), numbersOf(captured.dx));
  }
  // What is not captured goes on from there.
  ASSERT_EQ(captured.run(), "");
  EXPECT_TRUE(areMasks(numbersOf(captured.o), 4, offset));
  ASSERT_EQ((*driver)->graphExecDestroy(exec), 0);
  ASSERT_EQ((*driver)->graphDestroy(graph), 0);
}
