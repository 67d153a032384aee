//===- StreamModelTest.cpp - models on several streams --------------------===//
//
// Rows S06, S08, S13, S14, S17 and S18 for models, on the emulator: programs
// whose launches are on several streams, backwards on other streams than their
// forwards, and what a capture forbids.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Control.h"
#include "tests/cuda/OnEmulator.h"
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::cuda::driver;
using namespace tandem::test;
using runtime::Argument;
using runtime::Backend;
using runtime::Context;
using runtime::Destination;
using runtime::Model;
using runtime::Stream;
using runtime::StreamScope;
using runtime::Tensor;

namespace {

constexpr uint64_t delay = 1'000'000;

/// The driver starts with a second device, which nobody here asks for.
[[maybe_unused]] const bool twoDevices = startWithDevices(2);

using Values = std::vector<float>;

/// The regression with the bias's part of its programs on a stream of its own.
artifact::Manifest regressionOnTwoStreams() {
  artifact::Manifest manifest = regression();
  for (artifact::Program &program : manifest.programs) {
    if (program.name == "forward")
      program.launches[3].stream = 1;
    if (program.name == "backward" || program.name == "update")
      program.launches[1].stream = 1;
  }
  return manifest;
}

class StreamModel : public ::testing::Test {
protected:
  void SetUp() override {
    Result<Backend *> opened = runtime::backendOf(emulated);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    backend = *opened;
    f = *backend->side(20);
    a = *backend->side(21);
    b = *backend->side(22);
    one = tensorOf({1}, {});
    x = sampleX();
    y = sampleY();
    StreamScope scope(emulated, nullptr);
    load(regression());
    Context context = forward(nullptr);
    backward(context, nullptr);
    expected = valuesOf(gw);
    expectedB = valuesOf(gb)[0];
    gw = gb = Tensor();
  }
  void load(const artifact::Manifest &manifest, bool useGraphs = false) {
    runtime::Options options;
    options.seed = 3;
    options.useGraphs = useGraphs;
    model = std::make_unique<Model>(modelFor(manifest, options));
  }

  Context forward(Stream stream) {
    StreamScope scope(emulated, stream);
    Result<Context> context = model->forward(inputs, outputs);
    EXPECT_TRUE(context.ok()) << context.status().message();
    return context ? std::move(*context) : Context();
  }
  void backward(Context &context, Stream stream, bool retain = false) {
    StreamScope scope(emulated, stream);
    EXPECT_EQ(
        model->backward(context, cotangents, grads, {retain, false}).message(),
        "");
  }
  void update(Stream stream) {
    StreamScope scope(emulated, stream);
    Argument given[] = {{"w", &gw}, {"b", &gb}};
    EXPECT_EQ(model->update(given).message(), "");
  }
  Values read(const Tensor &tensor, Stream stream) {
    StreamScope scope(emulated, stream);
    return valuesOf(*tensor.onHost());
  }
  Values times(float factor) {
    Values values = expected;
    for (float &value : values)
      value *= factor;
    return values;
  }

  void begin() {
    tandemEmulatorDrain();
    tandemEmulatorSetLogging(1);
    tandemEmulatorClearLog();
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
  int placeOf(const std::string &text) {
    std::vector<std::string> lines = log();
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find(text) != std::string::npos)
        return static_cast<int>(i);
    return -1;
  }

  Backend *backend = nullptr;
  std::unique_ptr<Model> model;
  Stream f = nullptr, a = nullptr, b = nullptr;
  Tensor x, y, one, loss, gw, gb;
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}};
  std::vector<Destination> outputs = {{"loss", &loss}};
  std::vector<Argument> cotangents = {{"loss", &one}};
  std::vector<Destination> grads = {{"w", &gw}, {"b", &gb}};
  Values expected; ///< the gradient of w
  float expectedB = 0;
};

TEST_F(StreamModel, S06_ADeviceWithoutAContextIsLeftWithout) {
  const cuda::Driver &driver = emulatedDriver();
  CUdevice second = 0;
  ASSERT_EQ(driver->deviceGet(&second, 1), 0);
  Context context = forward(f);
  begin();
  backward(context, a);
  EXPECT_GE(waitOf(a, f), 0);
  EXPECT_EQ(read(gw, a), expected);
  update(a);
  EXPECT_EQ(placeOf("@1"), -1);
  unsigned flags = 0;
  int isActive = -1;
  ASSERT_EQ(driver->devicePrimaryCtxGetState(second, &flags, &isActive), 0);
  EXPECT_EQ(isActive, 0);
}

// The pinned memory between the host and the device is used again when the
// device is done with it, and read when the device has written it: the emulator
// is told when the host touches it.
TEST_F(StreamModel, S08_TheHostUsesPinnedMemoryAfterTheEvent) {
  Tensor hx = *x.onHost(), hy = *y.onHost(), hostLoss = *loss.onHost();
  inputs = {{"x", &hx}, {"y", &hy}};
  Tensor pred;
  outputs = {{"pred", &pred}};
  StreamScope scope(emulated, f);
  Values w = read(*model->get("w"), f);
  for (int i = 0; i < 4; ++i) { // two buffers by turns
    ASSERT_TRUE(hx.fill(i).ok());
    tandemEmulatorDelay(f, delay);
    ASSERT_TRUE(model->forward(inputs, outputs).ok());
  }
  EXPECT_EQ(read(pred, f)[0], 3 * w[0] + 3 * w[1] + 3 * w[2]);
  outputs = {{"loss", &hostLoss}};
  tandemEmulatorDelay(f, delay);
  ASSERT_TRUE(model->forward(inputs, outputs).ok());
  outputs = {{"loss", &loss}};
  ASSERT_TRUE(model->forward(inputs, outputs).ok());
  EXPECT_EQ(hostLoss.at(0), read(loss, f)[0]);
}

// What is freed on one stream is not used anew before the other is done.
TEST_F(StreamModel, S14_ACotangentAndAGradientThatAreFreed) {
  {
    Context context = forward(f);
    StreamScope onA(emulated, a);
    Tensor cotangent = tensorOf({3}, {});
    const void *data = cotangent.data();
    cotangents = {{"loss", &cotangent}};
    tandemEmulatorDelay(f, delay);
    {
      // The caller's stream does not wait, so that only f uses it still.
      cotangent.storage()->useOn(f);
      ASSERT_TRUE(backend->wait(f, a).ok());
      StreamScope onF(emulated, f);
      ASSERT_EQ(model->backward(context, cotangents, grads).message(), "");
    }
    cotangent = Tensor();
    tandemEmulatorFail("alloc:1"); // nothing but what was freed
    Tensor next = *Tensor::empty(artifact::DType::F32, {}, emulated);
    tandemEmulatorFail(nullptr);
    EXPECT_EQ(next.data(), data);
    ASSERT_TRUE(next.fill(100).ok());
    ASSERT_TRUE(backend->synchronize(a).ok());
    EXPECT_EQ(read(gw, f), times(3));
  }
  // A gradient that was made on f, in use on b.
  cotangents = {{"loss", &one}};
  Context context = forward(f);
  gw = Tensor();
  backward(context, f);
  Tensor copy;
  {
    StreamScope onB(emulated, b);
    ASSERT_TRUE(backend->wait(b, f).ok());
    copy =
        *Tensor::empty(artifact::DType::F32, std::vector<int64_t>{3}, emulated);
    tandemEmulatorDelay(b, delay);
    ASSERT_TRUE(copy.copyFrom(gw).ok());
  }
  gw = Tensor();
  StreamScope onF(emulated, f);
  tandemEmulatorFail("alloc:1");
  Tensor next =
      *Tensor::empty(artifact::DType::F32, std::vector<int64_t>{3}, emulated);
  tandemEmulatorFail(nullptr);
  ASSERT_TRUE(next.fill(100).ok());
  ASSERT_TRUE(backend->synchronize(f).ok());
  EXPECT_EQ(read(copy, b), expected);
}

// The side stream waits for the caller's at entry, the caller's for it at exit,
// whether the program is queued or launched as a graph.
TEST_F(StreamModel, S13_AProgramOfSeveralStreams) {
  for (bool useGraphs : {false, true}) {
    SCOPED_TRACE(useGraphs ? "graph" : "streams");
    load(regressionOnTwoStreams(), useGraphs);
    for (int round = 1; round <= 2; ++round) { // a graph is replayed
      begin();
      {
        // What comes in is late on the caller's stream.
        StreamScope scope(emulated, f);
        tandemEmulatorDelay(f, delay);
        ASSERT_TRUE(one.fill(2).ok());
      }
      Context context = forward(f);
      begin();
      {
        StreamScope scope(emulated, f);
        tandemEmulatorDelay(f, delay);
        ASSERT_TRUE(one.fill(4).ok());
      }
      gw = gb = Tensor();
      backward(context, f);
      if (!useGraphs) {
        Stream side = *backend->side(0);
        int entry = waitOf(side, f), work = placeOf(name(side) + ": kernel"),
            end = waitOf(f, side);
        EXPECT_GE(entry, 0);
        EXPECT_GT(work, entry);
        EXPECT_GT(end, work);
      }
      if (round == 1) {
        EXPECT_EQ(read(gw, f), times(4));
        EXPECT_EQ(read(gb, f)[0], 4 * expectedB);
      }
      EXPECT_EQ(read(*model->get("steps"), f), Values{float(round)});
      update(f);
      EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
    }
  }
}

TEST_F(StreamModel, S13_AProgramOfOneStream) {
  for (int round = 0; round < 2; ++round) {
    TandemEmulatorCounts before = tandemEmulatorGetCounts();
    Context context = forward(f);
    backward(context, f);
    update(f);
    TandemEmulatorCounts after = tandemEmulatorGetCounts();
    if (round) {
      EXPECT_EQ(after.eventRecords, before.eventRecords);
      EXPECT_EQ(after.eventWaits, before.eventWaits);
      EXPECT_EQ(after.syncs, before.syncs);
    }
  }
}

// Host tensors and reads of the host: an error, the capture has ended, and the
// next step is right.
TEST_F(StreamModel, S17_TheHostInACapture) {
  Context warm = forward(f);
  backward(warm, f);
  Context held = forward(f);
  Values before = read(loss, f);
  StreamScope scope(emulated, f);
  Tensor hostX = *x.onHost(),
         hostLoss = *Tensor::copyOf(std::vector<float>(1).data(),
                                    artifact::DType::F32, {}),
         hostG = *gw.onHost();
  std::vector<Argument> hostInputs = {{"x", &hostX}, {"y", &y}};
  std::vector<Destination> hostOutputs = {{"loss", &hostLoss}},
                           hostGrads = {{"w", &hostG}};
  using Act = std::function<Status()>;
  const std::pair<const char *, Act> acts[] = {
      {"input 'x' (index 0): expected device 'cuda:0' while its stream is "
       "captured but got 'cpu'",
       [&] { return model->run("forward", hostInputs, outputs); }},
      {"output 'loss' (index 0): expected device 'cuda:0'",
       [&] { return model->run("forward", inputs, hostOutputs); }},
      {"grad of 'w' (index 0): expected device 'cuda:0'",
       [&] { return model->backward(held, cotangents, hostGrads); }},
      {"cannot copy from 'cuda:0' to 'cpu' while a stream is captured",
       [&] { return loss.onHost().status(); }},
      {"cannot copy from 'cpu' to 'cuda:0' while a stream is captured",
       [&] { return model->set("w", hostG); }},
      {"", [&] {
         EXPECT_TRUE(std::isnan(loss.at(0)));
         return Status::success();
       }}};
  const cuda::Driver &driver = emulatedDriver();
  auto stream = static_cast<CUstream>(f);
  for (const auto &[what, act] : acts) {
    SCOPED_TRACE(what);
    ASSERT_EQ(driver->streamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
              0);
    Status status = act();
    EXPECT_EQ(status.ok(), !*what);
    EXPECT_NE(status.message().find(what), std::string::npos)
        << status.message();
    CUgraph graph = nullptr;
    EXPECT_EQ(driver->streamEndCapture(stream, &graph),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_TRUE(held.live());
    Context next = forward(f);
    EXPECT_EQ(read(loss, f), before);
    gw = Tensor();
    backward(next, f);
    EXPECT_EQ(read(gw, f), expected);
  }
  gw = Tensor();
  backward(held, f);
  EXPECT_EQ(read(gw, f), expected);
}

TEST_F(StreamModel, S18_RetainedAndCalledOnAnotherStream) {
  tandemEmulatorDelay(f, delay); // the forward is late
  Context context = forward(f);
  backward(context, a, true);
  EXPECT_EQ(read(gw, a), expected);
  gw = Tensor();
  StreamScope scope(emulated, b);
  begin();
  tandemEmulatorDelay(b, delay);
  ASSERT_TRUE(one.fill(2).ok());
  backward(context, b);
  EXPECT_GE(waitOf(b, f), 0);
  EXPECT_GE(waitOf(f, b), 0);
  EXPECT_EQ(read(gw, b), times(2));
}

} // namespace
