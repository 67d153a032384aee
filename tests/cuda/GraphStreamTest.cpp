//===- GraphStreamTest.cpp - the engine's streams, on the emulator --------===//
//
// Rows S01 to S12 for graphs of nodes. The emulator runs nothing before it is
// needed (policy "lazy"), logs every wait, and reports accesses that nothing
// orders, so that a missing wait is seen whatever the numbers are. Delays are
// in virtual time.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"
#include "cuda/emulator/DriverEntries.h"
#include "tests/runtime/graph/TestNodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

using namespace tandem;
using namespace tandem::graph;
using namespace tandem::graph::testing;
using runtime::Backend;
using runtime::StreamScope;

namespace {

constexpr uint64_t kDelay = 100'000; // ns: long against everything else

class GraphStreams : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    tandemEmulatorSetDevices(3);
    cuda::registerDevices();
  }

  void SetUp() override {
    ASSERT_EQ(tandemEmulatorSetPolicy("lazy"), 0);
    Result<Backend *> opened = runtime::backendOf(device);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    backend = *opened;
    Result<Backend *> beside = runtime::backendOf(other);
    ASSERT_TRUE(beside.ok()) << beside.status().message();
    second = *beside;
    Stream *streams[] = {&s, &a, &b, &c};
    for (int i = 0; i < 4; ++i) {
      Result<Stream> side = backend->side(20 + i);
      ASSERT_TRUE(side.ok()) << side.status().message();
      *streams[i] = *side;
    }
    tandemEmulatorDrain();
    tandemEmulatorSetLogging(1);
    tandemEmulatorClearLog();
    tandemEmulatorClearErrors();
  }

  void TearDown() override {
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorError(0);
    tandemEmulatorReset();
  }

  /// A tensor of the device, filled on the current stream.
  Tensor filled(double value, Device on) {
    int64_t shape[] = {64};
    Tensor tensor = *Tensor::empty(artifact::DType::F32, shape, on);
    EXPECT_TRUE(tensor.fill(value).ok());
    return tensor;
  }
  Tensor filled(double value) { return filled(value, device); }
  Tensor scalar() {
    Tensor tensor = *Tensor::empty(artifact::DType::F32, {}, device);
    EXPECT_TRUE(tensor.fill(0).ok());
    return tensor;
  }

  /// A node on `stream` that doubles what it gets, after `delay`.
  Value doubling(const char *name, Stream stream, std::vector<Edge> edges,
                 uint64_t delay = 0, bool isScalar = false) {
    StreamScope scope(device, stream);
    Tensor like = isScalar ? scalar() : filled(0);
    return FunctionNode::make(
        name, like, std::move(edges),
        [this, delay](Tensors inputs, Tensors &outputs) {
          Stream now = runtime::currentStream(device);
          if (delay)
            tandemEmulatorDelay(now, delay);
          Tensor twice =
              *Tensor::empty(artifact::DType::F32, inputs[0].shape(), device);
          inputs[0].storage()->useOn(now);
          Status status = backend->add(
              artifact::DType::F32, twice.mutableData(), inputs[0].data(),
              inputs[0].data(), inputs[0].elements(), now);
          for (Tensor &output : outputs)
            output = twice;
          return status;
        });
  }

  Value leaf(const char *name, Stream stream) {
    StreamScope scope(device, stream);
    return *Leaf::make(name, filled(0));
  }

  std::string name(Stream stream) { return tandemEmulatorStreamName(stream); }
  std::vector<std::string> log() {
    std::vector<std::string> lines;
    for (size_t i = 0; i < tandemEmulatorLogSize(); ++i)
      lines.push_back(tandemEmulatorLogLine(i));
    return lines;
  }
  /// The place in the log of the first wait of `waiter` for `producer`, or -1.
  int waitOf(Stream waiter, Stream producer) {
    std::vector<std::string> lines = log();
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].starts_with(name(waiter) + ": wait") &&
          lines[i].ends_with(" of " + name(producer)))
        return static_cast<int>(i);
    return -1;
  }
  int placeOf(const std::string &text, int from = 0) {
    std::vector<std::string> lines = log();
    for (size_t i = from; i < lines.size(); ++i)
      if (lines[i].find(text) != std::string::npos)
        return static_cast<int>(i);
    return -1;
  }
  /// Everything before is over; only what follows is logged.
  void begin() {
    tandemEmulatorDrain();
    tandemEmulatorClearLog();
  }
  float first(const Tensor &tensor) {
    return static_cast<float>(tensor.onHost()->at(0));
  }
  static const Tensor &gradientOf(const Value &value) {
    return static_cast<Leaf &>(*value.edge.node).gradient();
  }

  Device device{runtime::DeviceKind::CudaEmu, 0};
  Device other{runtime::DeviceKind::CudaEmu, 1};
  Backend *backend = nullptr, *second = nullptr;
  Stream s = nullptr, a = nullptr, b = nullptr, c = nullptr;
};

} // namespace

TEST_F(GraphStreams, S01_ADelayOnOneBranchDoesNotHoldUpAnother) {
  Value wa = leaf("wa", a), wb = leaf("wb", b);
  Value slow = doubling("slow", a, {wa.edge}, kDelay);
  Value fast = doubling("fast", b, {wb.edge});
  StreamScope scope(device, s);
  Tensor one = filled(1), two = filled(2);
  begin();
  uint64_t start = tandemEmulatorHostTime();
  Root roots[] = {{slow.edge, one}, {fast.edge, two}};
  ASSERT_EQ(backward(roots).message(), "");
  // Each on its forward's stream, and b has nothing to do with a.
  EXPECT_EQ(waitOf(b, a), -1);
  EXPECT_EQ(waitOf(a, b), -1);
  EXPECT_GE(placeOf(name(a) + ": kernel"), 0);
  EXPECT_GE(placeOf(name(b) + ": kernel"), 0);
  EXPECT_EQ(placeOf(name(s) + ": kernel"), -1);
  ASSERT_TRUE(backend->synchronize(b).ok());
  EXPECT_LT(tandemEmulatorHostTime() - start, kDelay);
  EXPECT_EQ(first(gradientOf(wa)), 2);
  EXPECT_EQ(first(gradientOf(wb)), 4);
}

TEST_F(GraphStreams, S02_AnImplicitRootGradientIsMadeOnTheCallersStream) {
  Value loss = doubling("loss", a, {}, 0, /*isScalar=*/true);
  StreamScope scope(device, s);
  begin();
  tandemEmulatorDelay(s, kDelay);
  Root root{loss.edge, {}};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  int made = placeOf(name(s) + ": memset");
  EXPECT_GE(made, 0);
  EXPECT_GT(waitOf(a, s), made);
  EXPECT_EQ(placeOf("default"), -1);
}

TEST_F(GraphStreams, S03_ARootGradientThatWasFilledOnTheCallersStream) {
  Value w = leaf("w", a);
  Value node = doubling("node", a, {w.edge});
  Tensor gradient;
  {
    StreamScope scope(device, s);
    gradient = filled(0);
    begin();
    tandemEmulatorDelay(s, kDelay);
    ASSERT_TRUE(gradient.fill(3).ok());
    Root root{node.edge, gradient};
    ASSERT_EQ(backward({&root, 1}).message(), "");
    EXPECT_EQ(first(gradientOf(w)), 6);
    Edge input = w.edge;
    Result<Gradients> gradients = grad({&root, 1}, {&input, 1});
    ASSERT_TRUE(gradients.ok());
    EXPECT_EQ(first((*gradients)[0].tensor), 6);
    tandemEmulatorDelay(s, kDelay);
    ASSERT_TRUE(gradient.fill(5).ok());
  }
  // The same on b, which waits for s.
  StreamScope scope(device, b);
  ASSERT_TRUE(backend->wait(b, s).ok());
  gradient.storage()->useOn(b);
  Root root{node.edge, gradient};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  EXPECT_EQ(first(gradientOf(w)), 16);
  Edge input = w.edge;
  Result<Gradients> gradients = grad({&root, 1}, {&input, 1});
  ASSERT_TRUE(gradients.ok());
  EXPECT_EQ(first((*gradients)[0].tensor), 10);
}

TEST_F(GraphStreams, S04_ARootGradientOfAnotherStreamIsNotWaitedFor) {
  Value w = leaf("w", b);
  Value node = doubling("node", b, {w.edge});
  Tensor gradient;
  {
    StreamScope scope(device, a);
    gradient = filled(1);
  }
  begin();
  {
    StreamScope scope(device, a);
    tandemEmulatorDelay(a, kDelay);
    ASSERT_TRUE(gradient.fill(100).ok());
  }
  StreamScope scope(device, b);
  Root root{node.edge, gradient};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  EXPECT_EQ(waitOf(b, a), -1);
  EXPECT_EQ(first(gradientOf(w)), 2); // the old bytes
  EXPECT_GT(tandemEmulatorErrorCount(), 0u);
  tandemEmulatorClearErrors();
}

TEST_F(GraphStreams, S05_RootsOnTwoDevicesAreOrderedByTheirOwnStreams) {
  Stream t = *second->side(20), u = *second->side(21);
  Value w0 = leaf("w0", a);
  Value w1;
  {
    StreamScope scope(other, u);
    w1 = *Leaf::make("w1", filled(0, other));
  }
  StreamScope scope0(device, s), scope1(other, t);
  Tensor one = filled(1), two = filled(2, other);
  begin();
  tandemEmulatorDelay(s, kDelay);
  ASSERT_TRUE(one.fill(3).ok());
  tandemEmulatorDelay(t, kDelay);
  ASSERT_TRUE(two.fill(4).ok());
  Root roots[] = {{w0.edge, one}, {w1.edge, two}};
  ASSERT_EQ(backward(roots).message(), "");
  EXPECT_GE(waitOf(a, s), 0);
  EXPECT_GE(waitOf(u, t), 0);
  EXPECT_EQ(first(gradientOf(w0)), 3);
  EXPECT_EQ(first(gradientOf(w1)), 4);
}

TEST_F(GraphStreams, S06_InTheEndTheCallersStreamWaitsForEveryLeafsStream) {
  Value w = leaf("w", a), captured = leaf("captured", b);
  Value node = doubling("node", s, {w.edge, captured.edge});
  Value end = doubling("end", c, {});
  Value top = doubling("top", s, {node.edge, end.edge});
  StreamScope scope(device, s);
  Tensor one = filled(1);
  begin();
  Root root{top.edge, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  EXPECT_GE(waitOf(s, a), 0); // accumulation
  EXPECT_GE(waitOf(s, c), 0); // a node without outputs
  // Other devices have no part in it; the third, which no test uses, is not
  // even opened.
  EXPECT_EQ(placeOf("@1"), -1);
  unsigned flags = 0;
  int isActive = -1;
  ASSERT_EQ(cuda::driver::cuDevicePrimaryCtxGetState(2, &flags, &isActive),
            cuda::driver::CUDA_SUCCESS);
  EXPECT_EQ(isActive, 0);
  EXPECT_EQ(first(gradientOf(w)), 4);

  begin();
  Edge input = captured.edge;
  Result<Gradients> gradients = grad({&root, 1}, {&input, 1});
  ASSERT_TRUE(gradients.ok());
  EXPECT_GE(waitOf(s, b), 0);
  EXPECT_EQ(first((*gradients)[0].tensor), 4);
}

TEST_F(GraphStreams, S07_TheDefaultStreamGetsNoWaitWhereItIsNotCurrent) {
  Value w = leaf("w", a);
  Value node = doubling("node", a, {w.edge}, kDelay);
  Tensor copy;
  {
    StreamScope onDefault(device, nullptr);
    copy = filled(0);
  }
  begin();
  {
    StreamScope scope(device, s);
    Tensor one = filled(1);
    Root root{node.edge, one};
    ASSERT_EQ(backward({&root, 1}).message(), "");
  }
  EXPECT_EQ(placeOf("default: wait"), -1);
  const Tensor &gradient = gradientOf(w);
  auto use = [&] {
    StreamScope onDefault(device, nullptr);
    EXPECT_TRUE(backend
                    ->copy(copy.mutableData(), gradient.data(),
                           gradient.bytes(), nullptr)
                    .ok());
    tandemEmulatorDrain();
  };
  use();
  EXPECT_GT(tandemEmulatorErrorCount(), 0u);
  tandemEmulatorClearErrors();
  ASSERT_TRUE(backend->wait(nullptr, s).ok());
  use();
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u);
}

TEST_F(GraphStreams, S08_AConsumerOnItsProducersStreamNeedsNoEvent) {
  Value w = leaf("w", s);
  Value same = doubling("same", s, {w.edge});
  StreamScope scope(device, s);
  Tensor one = filled(1);
  begin();
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  Root root{same.edge, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_EQ(after.eventRecords, before.eventRecords);
  EXPECT_EQ(after.eventWaits, before.eventWaits);
  EXPECT_EQ(after.syncs, before.syncs);
}

TEST_F(GraphStreams, S08_AConsumerOnAnotherStreamNeedsOneWaitAndNoSync) {
  Value end = doubling("end", a, {});
  Value first = doubling("first", s, {end.edge});
  StreamScope scope(device, s);
  Tensor one = filled(1);
  begin();
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  Root root{first.edge, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_GE(waitOf(a, s), 0);
  EXPECT_GE(waitOf(s, a), 0); // the caller's, in the end
  EXPECT_EQ(after.eventWaits, before.eventWaits + 2);
  EXPECT_EQ(after.syncs, before.syncs);
}

TEST_F(GraphStreams, S08_AConsumerOnTheHostReadsWhenTheGradientIsThere) {
  float zero = 0;
  int64_t shape[] = {64};
  std::vector<float> zeros(64, zero);
  Value w = *Leaf::make(
      "w", *Tensor::copyOf(zeros.data(), artifact::DType::F32, shape));
  Value toHost;
  {
    StreamScope scope(device, a);
    toHost = FunctionNode::make("to host", filled(0), {w.edge},
                                [](Tensors inputs, Tensors &outputs) {
                                  Result<Tensor> host = inputs[0].onHost();
                                  if (!host)
                                    return host.status();
                                  outputs[0] = *host;
                                  return Status::success();
                                });
  }
  Value device = doubling("device", a, {toHost.edge}, kDelay);
  StreamScope scope(this->device, s);
  Tensor one = filled(1);
  begin();
  Root root{device.edge, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  EXPECT_EQ(gradientOf(w).at(0), 2);
  EXPECT_EQ(placeOf("synchronize context"), -1);
}

// A number is moved to the device of the input that it goes to, in the order of
// the stream that made it; another shape is not.
TEST_F(GraphStreams, N25_ANumberOnAnotherDeviceIsMoved) {
  Stream t = *second->side(20);
  float zero = 0;
  for (Device from : {Device(), other})
    for (Device to : {Device(), device}) {
      if (from == to)
        continue;
      Tensor place = *Tensor::copyOf(&zero, artifact::DType::F32, {});
      StreamScope scope(device, a), scope1(other, t);
      Value w = *Leaf::make("w", *place.copyTo(to));
      Value node = FunctionNode::make(
          "node", *place.copyTo(from), {w.edge},
          [&](Tensors, Tensors &outputs) {
            if (from == other)
              tandemEmulatorDelay(runtime::currentStream(other), kDelay);
            outputs[0] = *Tensor::empty(artifact::DType::F32, {}, from);
            return outputs[0].fill(7);
          });
      Root root{node.edge, {}};
      ASSERT_EQ(backward({&root, 1}).message(), "");
      EXPECT_EQ(gradientOf(w).device(), to);
      EXPECT_EQ(first(gradientOf(w)), 7);
    }
  Value w = leaf("w", a);
  Value wrong = FunctionNode::make("wrong", scalar(), {w.edge},
                                   [&](Tensors, Tensors &outputs) {
                                     outputs[0] = filled(1, other);
                                     return Status::success();
                                   });
  Root root{wrong.edge, {}};
  std::string message = backward({&root, 1}).message();
  EXPECT_NE(message.find("output 0 of node 'wrong'"), std::string::npos)
      << message;
}

// A device's thread has the caller's streams, those of other devices, too.
TEST_F(GraphStreams, N31_ADevicesThreadHasTheCallersStreams) {
  for (int number : {20, 21}) {
    Stream seen = nullptr;
    std::thread::id ran;
    StreamScope scope(other, *second->side(number));
    Value w = leaf("w", a);
    Value below = FunctionNode::make("below", w.tensor, {w.edge},
                                     [&](Tensors inputs, Tensors &outputs) {
                                       seen = runtime::currentStream(other);
                                       ran = std::this_thread::get_id();
                                       outputs[0] = inputs[0];
                                       return Status::success();
                                     });
    Value above = FunctionNode::make("above", filled(0, other), {below.edge},
                                     [&](Tensors inputs, Tensors &outputs) {
                                       outputs[0] = *inputs[0].copyTo(device);
                                       return Status::success();
                                     });
    Root root{above.edge, filled(1, other)};
    ASSERT_EQ(backward({&root, 1}).message(), "");
    EXPECT_NE(ran, std::this_thread::get_id());
    EXPECT_EQ(seen, *second->side(number));
  }
}

// What is freed or written after a copy to another device was still read by it.
TEST_F(GraphStreams, S14_ACopyToAnotherDeviceHasReadItsSource) {
  Tensor source = filled(3), copy;
  tandemEmulatorDelay(nullptr, kDelay);
  copy = *source.copyTo(other);
  ASSERT_TRUE(source.fill(4).ok());
  source = Tensor();
  source = filled(5);
  EXPECT_EQ(first(copy), 3);
}

TEST_F(GraphStreams, S09_ASumWaitsForItsProducersJustBeforeItAdds) {
  Value end = doubling("end", c, {});
  Value x = doubling("x", a, {end.edge}, kDelay);
  Value y = doubling("y", b, {end.edge}, kDelay);
  StreamScope scope(device, s);
  Tensor one = filled(1);
  begin();
  uint64_t start = tandemEmulatorHostTime();
  Root roots[] = {{x.edge, one}, {y.edge, one}};
  ASSERT_EQ(backward(roots).message(), "");
  // Both producers are queued before the sum's stream waits for either.
  int lastWork =
      std::max(placeOf(name(a) + ": kernel"), placeOf(name(b) + ": kernel"));
  int firstWait = std::min(waitOf(c, a), waitOf(c, b));
  EXPECT_GT(firstWait, lastWork);
  EXPECT_GT(placeOf(name(c) + ": kernel"),
            std::max(waitOf(c, a), waitOf(c, b)));
  EXPECT_LT(tandemEmulatorEndTime() - start, 2 * kDelay);
}

TEST_F(GraphStreams, S10_ANodesStreamIsThatOfItsFirstInputOnADevice) {
  std::vector<Stream> seen;
  auto note = [&] { seen.push_back(runtime::currentStream(device)); };
  std::shared_ptr<FunctionNode> node;
  {
    StreamScope scope(device, a);
    node = std::make_shared<FunctionNode>("node", [&](Tensors, Tensors &) {
      note();
      return Status::success();
    });
    ASSERT_TRUE(node->addInput(filled(0)).ok());
  }
  {
    StreamScope scope(device, b);
    Result<int> input = node->addInput(filled(0));
    ASSERT_FALSE(input.ok());
    EXPECT_NE(input.status().message().find("node 'node'"), std::string::npos);
  }
  addPreHook(*node, [&](Gradients &) {
    note();
    return Status::success();
  });
  addPostHook(*node, [&](Gradients &, const Gradients &) {
    note();
    return Status::success();
  });
  StreamScope scope(device, s);
  Tensor one = filled(1);
  Root root{{node, 0}, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  EXPECT_EQ(seen, (std::vector<Stream>{a, a, a}));
  EXPECT_EQ(runtime::currentStream(device), s);
}

TEST_F(GraphStreams, S11_ALeafThatWasFirstUsedOnAnotherStream) {
  Value w = leaf("w", a);
  Value node = doubling("node", s, {w.edge});
  StreamScope scope(device, s);
  Tensor one = filled(1);
  begin();
  TandemEmulatorCounts before = tandemEmulatorGetCounts();
  Root root{node.edge, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  TandemEmulatorCounts after = tandemEmulatorGetCounts();
  EXPECT_GE(waitOf(a, s), 0);
  // That one, and the caller's in the end.
  EXPECT_EQ(after.eventWaits, before.eventWaits + 2);
  EXPECT_EQ(first(gradientOf(w)), 2);
}

TEST_F(GraphStreams, S11_TheSameInACapture) {
  namespace driver = tandem::cuda::driver;
  Value w = leaf("w", a);
  Value node = doubling("node", s, {w.edge});
  StreamScope scope(device, s);
  Tensor one = filled(1);
  Root root{node.edge, one};
  auto &collected = static_cast<Leaf &>(*w.edge.node);
  for (int warm = 0; warm < 2; ++warm) {
    collected.clear();
    ASSERT_EQ(backward({&root, 1}).message(), "");
  }
  collected.clear();
  begin();
  auto stream = static_cast<driver::CUstream>(s);
  driver::CUcontext context = nullptr;
  ASSERT_EQ(driver::cuDevicePrimaryCtxRetain(&context, 0),
            driver::CUDA_SUCCESS);
  ASSERT_EQ(driver::cuCtxSetCurrent(context), driver::CUDA_SUCCESS);
  ASSERT_EQ(driver::cuStreamBeginCapture_v2(
                stream, driver::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            driver::CUDA_SUCCESS);
  ASSERT_EQ(backward({&root, 1}).message(), "");
  driver::CUgraph graph = nullptr;
  ASSERT_EQ(driver::cuStreamEndCapture(stream, &graph), driver::CUDA_SUCCESS);
  driver::CUgraphExec exec = nullptr;
  ASSERT_EQ(driver::cuGraphInstantiateWithFlags(&exec, graph, 0),
            driver::CUDA_SUCCESS);
  for (float value : {3.f, 5.f}) {
    ASSERT_TRUE(one.fill(value).ok());
    ASSERT_EQ(driver::cuGraphLaunch(exec, stream), driver::CUDA_SUCCESS);
    EXPECT_EQ(first(collected.gradient()), 2 * value);
  }
  ASSERT_EQ(driver::cuGraphExecDestroy(exec), driver::CUDA_SUCCESS);
  ASSERT_EQ(driver::cuGraphDestroy(graph), driver::CUDA_SUCCESS);
  ASSERT_EQ(driver::cuDevicePrimaryCtxRelease_v2(0), driver::CUDA_SUCCESS);
}

TEST_F(GraphStreams, S12_FinalCallbacksRunOnTheCallersStreamAfterItsWaits) {
  Value w = leaf("w", a);
  std::vector<Stream> seen;
  int waits = -1;
  {
    StreamScope onA(device, a);
    addPreHook(*w.edge.node, [&](Gradients &) {
      return queueCallback([&] {
        seen.push_back(runtime::currentStream(device));
        waits = waitOf(s, a);
        return queueCallback([&] {
          seen.push_back(runtime::currentStream(device));
          return Status::success();
        });
      });
    });
  }
  StreamScope scope(device, s);
  Tensor one = filled(1);
  begin();
  Root root{w.edge, one};
  ASSERT_EQ(backward({&root, 1}).message(), "");
  EXPECT_EQ(seen, (std::vector<Stream>{s, s}));
  EXPECT_GE(waits, 0);
}
