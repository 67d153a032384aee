//===- DistributedStreamTest.cpp - distributed parts on a device ----------===//
//
// Rows D13 and D14: parts of a backward that go over a device of one worker, on
// the emulator, which reports accesses that nothing orders.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"
#include "tests/runtime/graph/distributed/Team.h"

using namespace tandem;
using namespace tandem::graph;
using namespace tandem::graph::distributed;
using namespace tandem::graph::distributed::testing;
using runtime::Backend;
using runtime::Stream;
using runtime::StreamScope;

namespace {

class DistributedStreams : public ::testing::Test {
protected:
  static void SetUpTestSuite() { cuda::registerDevices(); }
  void SetUp() override {
    ASSERT_EQ(tandemEmulatorSetPolicy("lazy"), 0);
    Result<Backend *> opened = runtime::backendOf(device);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    backend = *opened;
    side = *backend->side(20);
    tandemEmulatorDrain();
    tandemEmulatorClearErrors();
  }
  void TearDown() override {
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorError(0);
    tandemEmulatorReset();
  }

  /// Doubles a tensor of the device on the current stream, late.
  Result<Value> doubled(const Value &x) {
    Stream now = runtime::currentStream(device);
    auto twice = [this](const Tensor &from) -> Result<Tensor> {
      Stream stream = runtime::currentStream(device);
      tandemEmulatorDelay(stream, 100'000);
      Result<Tensor> made =
          Tensor::empty(artifact::DType::F32, from.shape(), device);
      if (!made)
        return made;
      from.storage()->useOn(stream);
      if (Status status =
              backend->add(artifact::DType::F32, made->mutableData(),
                           from.data(), from.data(), from.elements(), stream);
          !status)
        return status;
      return made;
    };
    Result<Tensor> result = twice(x.tensor);
    if (!result)
      return std::move(result).status();
    return FunctionNode::make(
        "doubled", *result, {x.edge},
        [this, twice, now](Tensors inputs, Tensors &outputs) {
          isRightStream = runtime::currentStream(device) == now;
          Result<Tensor> gradient = twice(inputs[0]);
          if (gradient)
            outputs[0] = *gradient;
          return std::move(gradient).status();
        });
  }

  Device device{runtime::DeviceKind::CudaEmu, 0};
  Backend *backend = nullptr;
  Stream side = nullptr;
  std::atomic<bool> isRightStream{false};
  Team team{2};
};

/// The host's part, the device's, and the host's again, on one worker.
TEST_F(DistributedStreams, D13_HostDeviceHost) {
  Value w = leaf(3), x = leaf(2);
  ASSERT_TRUE(team[1]
                  .serve("over the device",
                         [&](std::vector<Value> &inputs,
                             std::vector<Value> &outputs) -> Status {
                           StreamScope scope(device, side);
                           Result<Value> made = ops::mul(inputs[0], w);
                           if (made)
                             made = ops::copyTo(*made, device);
                           if (made)
                             made = doubled(*made);
                           if (made)
                             made = ops::copyTo(*made, Device());
                           if (!made)
                             return std::move(made).status();
                           outputs[0] = *made;
                           return Status::success();
                         })
                  .ok());
  for (int i = 0; i < 3; ++i) {
    uint64_t id = *team[0].begin();
    auto y = team[0].call(1, "over the device", {{x}});
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ((*y)[0].tensor.at(0), 12);
    ASSERT_EQ(team[0].backward(id, {{shown((*y)[0])}}).message(), "");
    EXPECT_TRUE(isRightStream);
    EXPECT_EQ(at(team[0].gradient(id, *x.edge.node)), 6);
    EXPECT_EQ(at(team[1].gradient(id, *w.edge.node)), 4);
    team[0].release(id);
  }
}

/// A gradient arrives on the thread's stream, and is used on the forward's.
TEST_F(DistributedStreams, D14_AGradientArrivesOnAnotherStream) {
  Value x = leaf(2);
  Value w;
  {
    StreamScope scope(device, side);
    w = *Leaf::make("w", *number(3).copyTo(device));
  }
  ASSERT_TRUE(team[1]
                  .serve("on the device",
                         [&](std::vector<Value> &inputs,
                             std::vector<Value> &outputs) -> Status {
                           Stream now = runtime::currentStream(device);
                           StreamScope scope(device, side);
                           Result<Value> made = ops::copyTo(inputs[0], device);
                           if (made)
                             made = ops::add(*made, w);
                           if (made)
                             made = doubled(*made);
                           if (!made)
                             return std::move(made).status();
                           // It leaves in the order of the current stream.
                           outputs[0] = *made;
                           return backend->wait(now, side);
                         })
                  .ok());
  uint64_t id = *team[0].begin();
  auto y = team[0].call(1, "on the device", {{x}});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)[0].tensor.at(0), 10);
  ASSERT_EQ(team[0].backward(id, {{shown((*y)[0])}}).message(), "");
  EXPECT_TRUE(isRightStream);
  EXPECT_EQ(at(team[0].gradient(id, *x.edge.node)), 2);
  Value gradient = *team[1].gradient(id, *w.edge.node);
  EXPECT_EQ(gradient.tensor.device(), device);
  EXPECT_EQ(gradient.tensor.at(0), 2);
  team[0].release(id);
}

} // namespace
