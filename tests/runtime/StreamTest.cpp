//===- StreamTest.cpp - which stream waits for which ----------------------===//
//
// Rows of group S that compiled programs answer for, on a device whose streams
// run only as far as somebody waits for them: what is read without a wait is
// NaN or old.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

using Values = std::vector<float>;
using Log = std::vector<std::string>;

class Streams : public ::testing::Test {
protected:
  Streams() {
    testDevice() = tensorDevice() = there;
    model = std::make_unique<Model>(modelFor(regression(), {1, 3}));
    f = device.makeStream();
    a = device.makeStream();
    b = device.makeStream();
    x = sampleX();
    y = sampleY();
    one = tensorOf({1}, {});
    // What the host says of the gradients.
    testDevice() = tensorDevice() = Device{};
    Model host = modelFor(regression(), {1, 3});
    Tensor hx = sampleX(), hy = sampleY(), hone = tensorOf({1}, {}), gw;
    std::vector<Argument> in = {{"x", &hx}, {"y", &hy}}, ct = {{"loss", &hone}};
    std::vector<Destination> out = {{"w", &gw}};
    Result<Context> context = host.forward(in, {});
    EXPECT_TRUE(host.backward(*context, ct, out).ok());
    expected = valuesOf(gw);
    device.finishAll();
    device.takeLog();
  }
  ~Streams() override {
    device.finishAll();
    testDevice() = tensorDevice() = Device{};
  }

  Context forward(Stream stream) {
    StreamScope scope(there, stream);
    Result<Context> context = model->forward(inputs, outputs);
    EXPECT_TRUE(context) << context.status().message();
    return context ? std::move(*context) : Context();
  }
  Status backward(Context &context, Stream stream, bool retain = false) {
    StreamScope scope(there, stream);
    return model->backward(context, cotangents, grads, {retain, false});
  }
  /// Reads a tensor as a consumer on `stream` would.
  Values read(const Tensor &tensor, Stream stream) {
    StreamScope scope(there, stream);
    return valuesOf(*tensor.onHost());
  }
  void fill(Tensor &tensor, double value, Stream stream) {
    StreamScope scope(there, stream);
    EXPECT_TRUE(tensor.fill(value).ok());
  }
  std::string nameOf(Stream stream) {
    device.takeLog();
    Stream other = device.makeStream();
    EXPECT_TRUE(device.wait(other, stream).ok());
    std::string line = device.takeLog()[0];
    return line.substr(line.rfind(' ') + 1);
  }
  Values times(Values values, float factor) {
    for (float &value : values)
      value *= factor;
    return values;
  }
  static bool has(const Log &log, const std::string &line) {
    return std::find(log.begin(), log.end(), line) != log.end();
  }

  FakeDevice &device = FakeDevice::at(0);
  Device there = device.device();
  std::unique_ptr<Model> model;
  Stream f, a, b;
  Tensor x, y, one, loss, pred, gw, gb;
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}};
  std::vector<Destination> outputs = {{"loss", &loss}, {"pred", &pred}};
  std::vector<Argument> cotangents = {{"loss", &one}};
  std::vector<Destination> grads = {{"w", &gw}, {"b", &gb}};
  Values expected;
};

TEST_F(Streams, S03_ACotangentFilledOnTheCallersStream) {
  Context context = forward(f);
  fill(one, 2, a); // delayed
  ASSERT_TRUE(backward(context, a).ok());
  device.finish(f); // the program's stream is ahead of all others
  EXPECT_EQ(read(gw, a), times(expected, 2));

  Context second = forward(f);
  fill(one, 4, a);
  ASSERT_TRUE(device.wait(b, a).ok());
  gw = Tensor();
  ASSERT_TRUE(backward(second, b).ok());
  device.finish(f);
  EXPECT_EQ(read(gw, b), times(expected, 4));
}

TEST_F(Streams, S04_NoWaitForAStreamThatIsNotCurrent) {
  Context context = forward(f);
  device.finishAll();
  std::string filler = nameOf(a);
  fill(one, 2, a); // delayed, and nobody says so
  device.takeLog();
  ASSERT_TRUE(backward(context, b).ok());
  for (const std::string &line : device.takeLog())
    EXPECT_EQ(line.find("waits for " + filler), std::string::npos) << line;
  EXPECT_EQ(read(gw, b), expected) << "the old bytes";
}

TEST_F(Streams, S06_TheCallersStreamWaitsForTheForwards) {
  FakeDevice &other = FakeDevice::at(1);
  other.takeLog();
  int64_t others = other.allocations;
  Context context = forward(f);
  std::string caller = nameOf(a), program = nameOf(f);
  device.takeLog();
  ASSERT_TRUE(backward(context, a).ok());
  EXPECT_EQ(device.takeLog(), (Log{program + " waits for " + caller,
                                   caller + " waits for " + program}));
  EXPECT_EQ(read(gw, a), expected) << "right there at once";
  EXPECT_TRUE(other.takeLog().empty()) << "the other device is left alone";
  EXPECT_EQ(other.allocations, others);
}

TEST_F(Streams, S07_TheDefaultStreamWaitsForNothing) {
  Context context = forward(f);
  fill(one, 7, a); // what freed memory still holds is no such gradient
  device.takeLog();
  ASSERT_TRUE(backward(context, a).ok());
  for (const std::string &line : device.takeLog())
    EXPECT_EQ(line.find("s0"), std::string::npos) << line;
  EXPECT_NE(read(gw, nullptr), times(expected, 7)) << "a race";
  ASSERT_TRUE(device.wait(nullptr, a).ok());
  EXPECT_EQ(read(gw, nullptr), times(expected, 7));
}

TEST_F(Streams, S08_S13_OnOneStreamThereIsNoEvent) {
  for (Stream stream : {f, static_cast<Stream>(nullptr)}) {
    StreamScope scope(there, stream);
    for (int i = 0; i < 3; ++i) {
      device.takeLog(); // the first call may come from another stream
      if (i == 1)
        device.finishAll();
      Context context = forward(stream);
      ASSERT_TRUE(backward(context, stream).ok());
      std::vector<Argument> given = {{"w", &gw}, {"b", &gb}};
      ASSERT_TRUE(model->update(given).ok());
      ASSERT_TRUE(model->step(inputs, std::span(outputs).subspan(0, 1)).ok());
      if (i) {
        EXPECT_EQ(device.takeLog(), Log()) << "no wait, nothing stops the host";
      }
    }
  }
}

TEST_F(Streams, S08_OnAnotherStreamOneWaitAndNoSync) {
  Context context = forward(f);
  std::string program = nameOf(f), consumer = nameOf(b);
  device.takeLog();
  // Another call of the model, whose memory is the same.
  Context second = forward(b);
  EXPECT_EQ(device.takeLog(), Log{consumer + " waits for " + program});
  EXPECT_EQ(read(pred, b).size(), 8u);
  EXPECT_FALSE(std::isnan(read(pred, b)[0]));
}

TEST_F(Streams, S08_TheHostReadsAfterTheEvent) {
  Tensor host = *Tensor::zeros(DType::F32, Sizes{}),
         rows = *Tensor::zeros(DType::F32, Sizes{4, 4});
  Tensor strided = *rows.view(Sizes{8}, Sizes{2});
  outputs = {{"loss", &host}, {"pred", &strided}};
  std::string program = nameOf(f);
  device.takeLog();
  Context context = forward(f);
  EXPECT_EQ(device.takeLog(), Log{"await " + program}) << "one for both";
  EXPECT_GT(host.at(0), 0);
  EXPECT_NE(rows.at(0), 0);
  EXPECT_EQ(rows.at(1), 0) << "between the elements";
}

TEST_F(Streams, TensorsOfTheHostAreStagedWithoutAStop) {
  Tensor hx = *x.onHost(), hy = *y.onHost();
  inputs = {{"x", &hx}, {"y", &hy}};
  std::vector<Tensor> kept(4), losses(4);
  std::string program = nameOf(f);
  device.takeLog();
  StreamScope scope(there, f);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(hx.fill(i).ok()); // the next batch, while nothing has run
    outputs = {{"pred", &kept[i]}};
    ASSERT_TRUE(model->forward(inputs, outputs));
    Log log = device.takeLog();
    if (i < 2) {
      EXPECT_EQ(log, Log()) << "two buffers by turns";
    } else {
      EXPECT_TRUE(has(log, "await " + program)) << "a buffer is used again";
    }
  }
  Values w = valuesOf(*model->get("w")->onHost());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(read(kept[i], f)[0],
              float(i) * w[0] + float(i) * w[1] + float(i) * w[2]);
}

TEST_F(Streams, S14_MemoryThatAnotherStreamUses) {
  Context context = forward(f);
  device.finishAll();
  {
    StreamScope scope(there, a);
    Tensor cotangent = *Tensor::empty(DType::F32, Sizes{}, there);
    ASSERT_TRUE(cotangent.fill(3).ok());
    cotangents = {{"loss", &cotangent}};
    ASSERT_TRUE(backward(context, a).ok());
    const void *before = cotangent.data();
    cotangent = Tensor(); // freed on a, in use on f
    Stream other = device.makeStream();
    StreamScope scope2(there, other);
    Tensor next = *Tensor::empty(DType::F32, Sizes{}, there);
    ASSERT_EQ(next.data(), before) << "the same bytes";
    ASSERT_TRUE(next.fill(100).ok());
    device.finish(other);
    EXPECT_EQ(read(gw, f), times(expected, 3));
  }
  // A gradient that was made on f, used and freed on b.
  cotangents = {{"loss", &one}};
  Context second = forward(f);
  gw = Tensor();
  ASSERT_TRUE(backward(second, b).ok());
  StreamScope scope(there, b);
  Tensor copy = *Tensor::empty(DType::F32, Sizes{3}, there);
  ASSERT_TRUE(copy.copyFrom(gw).ok());
  const void *before = gw.data();
  gw = Tensor();
  StreamScope scope2(there, f);
  Tensor next = *Tensor::empty(DType::F32, Sizes{3}, there);
  ASSERT_EQ(next.data(), before);
  ASSERT_TRUE(next.fill(100).ok());
  device.finish(f);
  EXPECT_EQ(read(copy, b), expected);
}

TEST_F(Streams, S14_ManyStreamsUseOneTensor) {
  Tensor shared = *tensorOf({5}, {1}).copyTo(there);
  device.finishAll();
  std::vector<Stream> streams;
  std::vector<Tensor> copies;
  for (int i = 0; i < 20; ++i) {
    streams.push_back(device.makeStream());
    StreamScope scope(there, streams.back());
    copies.push_back(*Tensor::empty(DType::F32, Sizes{1}, there));
    ASSERT_TRUE(copies.back().copyFrom(shared).ok());
  }
  const void *before = shared.data();
  shared = Tensor();
  Tensor next = *Tensor::empty(DType::F32, Sizes{1}, there);
  ASSERT_EQ(next.data(), before);
  ASSERT_TRUE(next.fill(100).ok());
  device.finish(nullptr);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(read(copies[i], streams[i]), Values{5}) << i;
}

TEST_F(Streams, S15_CapturedOnceAndReplayed) {
  Tensor loss2;
  std::vector<Argument> given = {{"w", &gw}, {"b", &gb}};
  StreamScope scope(there, f);
  auto train = [&] {
    Context context = forward(f);
    ASSERT_TRUE(backward(context, f).ok());
    ASSERT_TRUE(model->update(given).ok());
  };
  train(); // makes the outputs and all memory
  Model other = [&] {
    testDevice() = there;
    return modelFor(regression(), {1, 3});
  }();
  ASSERT_TRUE(other.set("w", *model->get("w")).ok());
  ASSERT_TRUE(other.set("b", *model->get("b")).ok());
  device.finishAll();
  int64_t allocations = device.allocations;
  device.takeLog();
  device.beginCapture(f);
  train();
  auto graph = device.endCapture(f);
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_EQ(device.allocations, allocations);
  EXPECT_EQ(device.takeLog(), Log()) << "no wait, nothing stops the host";
  EXPECT_EQ(device.pending(f), 0u) << "nothing ran";
  for (int i = 0; i < 3; ++i) {
    setAt(x, 0, float(i)); // new data in the old place
    device.replay(f, *graph);
    Tensor w, b2, otherLoss;
    std::vector<Destination> out = {{"loss", &otherLoss}};
    Result<Context> context = other.forward(inputs, out);
    std::vector<Destination> to = {{"w", &w}, {"b", &b2}};
    ASSERT_TRUE(other.backward(*context, cotangents, to).ok());
    std::vector<Argument> from = {{"w", &w}, {"b", &b2}};
    ASSERT_TRUE(other.update(from).ok());
    EXPECT_EQ(read(loss, f), read(otherLoss, f)) << i;
    EXPECT_EQ(read(*model->get("w"), f), read(*other.get("w"), f)) << i;
  }
}

TEST_F(Streams, S17_WhatACaptureForbids) {
  Context warm = forward(f);
  ASSERT_TRUE(backward(warm, f).ok());
  Context held = forward(f);
  Values before = read(loss, f);
  Tensor hostX = *x.onHost(), hostLoss = *Tensor::zeros(DType::F32, Sizes{});
  device.finishAll();
  StreamScope scope(there, f);
  struct Row {
    std::vector<Argument> in;
    std::vector<Destination> out;
    std::string part;
  };
  Tensor none;
  Row rows[] = {
      {{{"x", &hostX}, {"y", &y}},
       {{"loss", &loss}},
       "input 'x' (index 0): expected device 'cuda-emu:0' while its stream is "
       "captured but got 'cpu'"},
      {{{"x", &x}, {"y", &y}},
       {{"loss", &hostLoss}},
       "output 'loss' (index 0): expected device 'cuda-emu:0' while its stream "
       "is captured but got 'cpu'"},
      {{{"x", &x}, {"y", &y}}, {{"pred", &none}}, "in a capture"},
  };
  std::vector<Tensor> hoard; // no memory is left of the size of an output
  for (int i = 0; i < 100; ++i)
    hoard.push_back(*Tensor::empty(DType::F32, Sizes{8}, there));
  device.finishAll();
  for (const Row &row : rows) {
    device.beginCapture(f);
    Status status = model->run("forward", row.in, row.out);
    expectMessage(status, row.part);
    EXPECT_FALSE(device.endCapture(f)) << "the capture has ended";
    ASSERT_TRUE(model->forward(inputs, outputs)) << "the next step";
    EXPECT_EQ(read(loss, f), before);
  }
  Tensor hostG = *Tensor::zeros(DType::F32, Sizes{3});
  grads = {{"w", &hostG}};
  std::function<void()> acts[] = {
      [&] {
        expectMessage(backward(held, f),
                      "grad of 'w' (index 0): expected device");
      },
      [&] {
        expectMessage(hostLoss.copyFrom(loss), "while a stream is captured");
      },
      [&] {
        expectMessage(model->set("w", hostG), "while a stream is captured");
      },
      [&] { EXPECT_TRUE(std::isnan(loss.at(0))); }};
  for (const auto &act : acts) {
    device.beginCapture(f);
    act();
    EXPECT_FALSE(device.endCapture(f)) << "the capture has ended";
    EXPECT_TRUE(held.live());
  }
  grads = {{"w", &gw}, {"b", &gb}};
  ASSERT_TRUE(backward(held, f).ok());
  EXPECT_EQ(read(gw, f), expected);
}

TEST_F(Streams, S18_RetainedAndCalledOnAnotherStream) {
  Context context = forward(f);
  ASSERT_TRUE(backward(context, a, true).ok());
  std::string program = nameOf(f), caller = nameOf(b);
  gw = Tensor();
  fill(one, 2, b);
  device.takeLog();
  ASSERT_TRUE(backward(context, b).ok());
  device.finish(f);
  Log log = device.takeLog();
  EXPECT_TRUE(has(log, caller + " waits for " + program));
  EXPECT_TRUE(has(log, program + " waits for " + caller));
  EXPECT_EQ(read(gw, b), times(expected, 2));
}

TEST_F(Streams, CallsOfOneModelAreOrdered) {
  // The second call finds the parameters that the first one wrote, and its
  // arena, although nobody ordered the two streams.
  Tensor first, second;
  std::vector<Destination> out = {{"loss", &first}};
  {
    StreamScope scope(there, a);
    ASSERT_TRUE(model->step(inputs, out).ok());
  }
  out = {{"loss", &second}};
  StreamScope scope(there, b);
  ASSERT_TRUE(model->step(inputs, out).ok());
  ASSERT_TRUE(model->set("b", *Tensor::zeros(DType::F32, Sizes{})).ok());
  testDevice() = Device{};
  Model host = modelFor(regression(), {1, 3});
  Tensor hx = *x.onHost(), hy = *y.onHost(), hostLoss;
  std::vector<Argument> in = {{"x", &hx}, {"y", &hy}};
  std::vector<Destination> to = {{"loss", &hostLoss}};
  ASSERT_TRUE(host.step(in, to).ok());
  ASSERT_TRUE(host.step(in, to).ok());
  EXPECT_EQ(read(second, b), valuesOf(hostLoss));
  {
    StreamScope other(there, a);
    EXPECT_EQ(read(*model->get("w"), a), valuesOf(*host.get("w")));
    EXPECT_EQ(read(*model->get("b"), a), Values{0});
  }
}

} // namespace
