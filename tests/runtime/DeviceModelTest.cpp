//===- DeviceModelTest.cpp - models on a device ---------------------------===//
//
// The same bits as on the host, with tensors on either side; what is refused;
// failures of the device, after which nothing leaks and everything still works.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

using Values = std::vector<float>;

class DeviceModel : public ::testing::Test {
protected:
  ~DeviceModel() override {
    device.lost = device.failsLaunches = false;
    device.failAllocation = -1;
    device.finishAll();
  }

  Model load(Device where, uint64_t seed = 3,
             const artifact::Manifest &manifest = regression()) {
    Options options;
    options.device = where;
    options.seed = seed;
    Result<Model> model = Model::load(readerForBoth(manifest), options);
    EXPECT_TRUE(model) << model.status().message();
    return *model;
  }
  /// One artifact for both.
  artifact::ArtifactReader
  readerForBoth(const artifact::Manifest &manifest = regression()) {
    artifact::ArtifactWriter writer = writerFor(manifest);
    // The fake device runs the kernels of the host's section.
    artifact::ArtifactWriter other;
    std::vector<float> first = {1};
    other.addConstant(std::as_bytes(std::span(first)));
    other.setManifest(forDevice(manifest));
    writer.join(std::move(other));
    Result<std::string> bytes = writer.bytes();
    EXPECT_TRUE(bytes) << bytes.status().message();
    auto reader =
        artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
    EXPECT_TRUE(reader) << reader.status().message();
    return *reader;
  }
  std::vector<Argument> inputs(const Tensor &x, const Tensor &y) {
    return {{"x", &x}, {"y", &y}};
  }

  FakeDevice &device = FakeDevice::at(0);
  Device there = device.device();
  Tensor x = sampleX(), y = sampleY(), one = tensorOf({1}, {});
};

TEST_F(DeviceModel, TargetAndDeviceAreChosen) {
  Result<Model> model = Model::load(readerForBoth());
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->device().isHost()) << "the host if there is code for it";
  EXPECT_EQ(load(there).device(), there);
  EXPECT_EQ(load(there).manifest().target.kind, "cuda");
  EXPECT_EQ(load(FakeDevice::at(1).device()).device().index, 1);
  FakeDevice::at(1).finishAll();
  Options options;
  options.device = Device{DeviceKind::CudaEmu, 7};
  expectMessage(Model::load(readerForBoth(), options).status(),
                "device 'cuda-emu:7': there are 2 devices");
  options.device = Device{DeviceKind::Other, 0};
  expectMessage(Model::load(readerForBoth(), options).status(),
                "no code for device 'device:0'; it has the targets 'cpu', "
                "'cuda:sm_90'");
}

// They were copied unseen.
TEST_F(DeviceModel, LabelsOfTheHostAreChecked) {
  Model model = load(there, 3, labelledRegression(artifact::DType::I32));
  std::vector<int32_t> labels(8, 9);
  auto tensor = Tensor::wrap(labels.data(), artifact::DType::I32,
                             std::vector<int64_t>{8});
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_TRUE(model.step(inputs(x, *tensor), {}).ok());
  labels[3] = 10;
  expectMessage(model.step(inputs(x, *tensor), {}), "but row 3 is 10");
  // What the device has is not waited for.
  auto moved = tensor->copyTo(there);
  ASSERT_TRUE(moved) << moved.status().message();
  EXPECT_TRUE(model.step(inputs(x, *moved), {}).ok());
}

TEST_F(DeviceModel, TrainsToTheSameBits) {
  for (uint64_t seed : {0, 3}) {
    Model host = load(Device{}, seed), near = load(there, seed),
          far = load(there, seed);
    Tensor there_x = *x.copyTo(there), there_y = *y.copyTo(there);
    Tensor hostLoss, nearLoss = *Tensor::zeros(DType::F32, Sizes{}), farLoss;
    std::vector<Destination> hostOut = {{"loss", &hostLoss}},
                             nearOut = {{"loss", &nearLoss}},
                             farOut = {{"loss", &farLoss}};
    for (const char *name : {"w", "b", "rate", "steps"})
      EXPECT_EQ(valuesOf(*near.get(name)), valuesOf(*host.get(name))) << name;
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(host.step(inputs(x, y), hostOut).ok());
      ASSERT_TRUE(near.step(inputs(x, y), nearOut).ok());
      ASSERT_TRUE(far.step(inputs(there_x, there_y), farOut).ok());
      EXPECT_EQ(nearLoss.device(), Device{});
      EXPECT_EQ(farLoss.device(), there);
      EXPECT_EQ(valuesOf(nearLoss), valuesOf(hostLoss)) << i;
      EXPECT_EQ(valuesOf(farLoss), valuesOf(hostLoss)) << i;
    }
    for (const char *name : {"w", "b", "steps"}) {
      EXPECT_EQ(near.get(name)->device(), there);
      EXPECT_EQ(valuesOf(*near.get(name)), valuesOf(*host.get(name))) << name;
      EXPECT_EQ(valuesOf(*far.get(name)), valuesOf(*host.get(name))) << name;
    }
    ASSERT_TRUE(near.initialize(9).ok());
    EXPECT_EQ(valuesOf(*near.get("w")), valuesOf(*load(Device{}, 9).get("w")));
    ASSERT_TRUE(near.set("w", tensorOf({1, 2, 3}, {3})).ok());
    EXPECT_EQ(valuesOf(*near.get("w")), Values({1, 2, 3}));
    ASSERT_TRUE(near.set("w", *far.get("w")).ok());
    EXPECT_EQ(valuesOf(*near.get("w")), valuesOf(*far.get("w")));
  }
}

TEST_F(DeviceModel, WrongDevicesAreNamed) {
  Model host = load(Device{}), near = load(there);
  Tensor elsewhere = *x.copyTo(FakeDevice::at(1).device());
  FakeDevice::at(1).finishAll();
  Tensor loss = *Tensor::zeros(DType::F32, Sizes{}, elsewhere.device());
  std::vector<Destination> out = {{"loss", &loss}};
  EXPECT_EQ(near.step(inputs(elsewhere, y), out).message(),
            "cannot run 'step': input 'x' (index 0): expected device "
            "'cuda-emu:0' or 'cpu' but got 'cuda-emu:1'; output 'loss' (index "
            "0): expected device 'cuda-emu:0' or 'cpu' but got 'cuda-emu:1'");
  EXPECT_EQ(host.step(inputs(elsewhere, y), {}).message(),
            "cannot run 'step': input 'x' (index 0): expected device 'cpu' but "
            "got 'cuda-emu:1'");
  EXPECT_EQ(near.get("steps")->at(0), 0) << "nothing ran";
  FakeDevice::at(1).finishAll();
}

TEST_F(DeviceModel, InputsThatAreNotDenseOrAligned) {
  Model host = load(Device{}), near = load(there);
  Tensor wide = filled({8, 6}, 1, 0.25),
         columns = *wide.view({{8, 3}}, {{6, 2}});
  Tensor shifted = filled({32}, -1, 0.5);
  Tensor off = *shifted.view({{8}}, {{1}}, 3);
  Tensor hostPred, nearPred;
  std::vector<Destination> hostOut = {{"pred", &hostPred}},
                           nearOut = {{"pred", &nearPred}};
  ASSERT_TRUE(host.forward(inputs(columns, off), hostOut));
  for (bool isThere : {false, true}) {
    Tensor w = isThere ? *wide.copyTo(there) : wide;
    Tensor s = isThere ? *shifted.copyTo(there) : shifted;
    nearPred = Tensor();
    ASSERT_TRUE(near.forward(
        inputs(*w.view({{8, 3}}, {{6, 2}}), *s.view({{8}}, {{1}}, 3)),
        nearOut));
    EXPECT_EQ(valuesOf(nearPred), valuesOf(hostPred));
  }
}

TEST_F(DeviceModel, HooksMayOffloadToTheHost) {
  Model host = load(Device{}), near = load(there);
  auto hooks = std::make_shared<SavedHooks>();
  hooks->pack = [&](std::string_view,
                    const Tensor &value) -> Result<std::shared_ptr<void>> {
    EXPECT_EQ(value.device(), there);
    Result<Tensor> copy = value.onHost();
    if (!copy)
      return copy.status();
    return std::static_pointer_cast<void>(std::make_shared<Tensor>(*copy));
  };
  hooks->unpack = [](std::string_view,
                     const std::shared_ptr<void> &packed) -> Result<Tensor> {
    return *static_cast<Tensor *>(packed.get());
  };
  std::vector<Argument> ct = {{"loss", &one}};
  Tensor hostG, nearG;
  std::vector<Destination> hostTo = {{"w", &hostG}}, nearTo = {{"w", &nearG}};
  Result<Context> first = host.forward(inputs(x, y), {});
  ASSERT_TRUE(host.backward(*first, ct, hostTo).ok());
  Stream stream = device.makeStream();
  StreamScope scope(there, stream);
  Result<Context> second = near.forward(inputs(x, y), {}, hooks);
  ASSERT_TRUE(second) << second.status().message();
  ASSERT_TRUE(near.backward(*second, ct, nearTo).ok());
  EXPECT_EQ(valuesOf(nearG), valuesOf(hostG));

  hooks->unpack = [&](std::string_view,
                      const std::shared_ptr<void> &packed) -> Result<Tensor> {
    return static_cast<Tensor *>(packed.get())
        ->copyTo(FakeDevice::at(1).device());
  };
  second = near.forward(inputs(x, y), {}, hooks);
  expectMessage(near.backward(*second, ct, nearTo),
                "expected a tensor on device 'cuda-emu:0' or 'cpu' with "
                "elements from the unpack hook");
  FakeDevice::at(1).finishAll();
}

TEST_F(DeviceModel, WhatIsSavedMayLieOnTheHost) {
  auto loadOf = [&](const artifact::Manifest &manifest) {
    Options options;
    options.device = there;
    options.seed = 3;
    Result<Model> model = Model::load(readerFor(manifest), options);
    EXPECT_TRUE(model) << model.status().message();
    return *model;
  };
  device.finishAll();
  int64_t pinned = device.pinnedInUse, fences = device.fencesInUse;
  Context kept;
  {
    Model plain = loadOf(forDevice(regression())),
          away = loadOf(offloadedRegression());
    EXPECT_EQ(plain.memory().host, 0);
    EXPECT_EQ(away.memory().host, 64); // of its steps
    Tensor there_x = *x.copyTo(there), there_y = *y.copyTo(there);
    Tensor there_one = *one.copyTo(there);
    std::vector<Argument> ct = {{"loss", &there_one}};
    Values all[2];
    for (Model *model : {&plain, &away})
      for (int i = 0; i < 3; ++i) {
        Tensor loss, w;
        std::vector<Destination> out = {{"loss", &loss}}, grads = {{"w", &w}};
        ASSERT_TRUE(model->step(inputs(there_x, there_y), out).ok());
        Result<Context> context = model->forward(inputs(there_x, there_y), {});
        ASSERT_TRUE(context) << context.status().message();
        ASSERT_TRUE(
            model->backward(*context, ct, grads, {.retainGraph = true}).ok());
        Values first = valuesOf(w);
        ASSERT_TRUE(model->backward(*context, ct, grads).ok());
        EXPECT_EQ(valuesOf(w), first);
        for (const Tensor &tensor : {loss, w})
          for (float value : valuesOf(tensor))
            all[model == &away].push_back(value);
      }
    EXPECT_EQ(all[1], all[0]);
    // A context has its own, which is used again.
    EXPECT_EQ(away.memory().host, 128);
    EXPECT_LT(away.memory().current, plain.memory().current);
    kept = *away.forward(inputs(there_x, there_y), {});
    EXPECT_EQ(away.memory().host, 128);
  }
  // It outlives the model.
  EXPECT_GT(device.pinnedInUse, pinned);
  kept = Context();
  device.finishAll();
  EXPECT_EQ(device.pinnedInUse, pinned);
  EXPECT_EQ(device.fencesInUse, fences);
}

TEST_F(DeviceModel, MemoryComesBack) {
  device.finishAll();
  int64_t bytes = device.bytesInUse, pinned = device.pinnedInUse,
          fences = device.fencesInUse;
  {
    Model near = load(there);
    Tensor loss = *Tensor::zeros(DType::F32, Sizes{}), kept;
    std::vector<Destination> out = {{"loss", &loss}, {"pred", &kept}};
    std::vector<Argument> ct = {{"loss", &one}};
    for (int i = 0; i < 50; ++i) {
      kept = Tensor();
      Result<Context> context = near.forward(inputs(x, y), out);
      ASSERT_TRUE(context);
      Tensor gw;
      std::vector<Destination> to = {{"w", &gw}};
      ASSERT_TRUE(near.backward(*context, ct, to).ok());
      if (i == 3) {
        EXPECT_GT(device.pinnedInUse, pinned);
      }
    }
    EXPECT_EQ(near.memory().current % 64, 0);
    // A context may outlive its model.
    Result<Context> last = near.forward(inputs(x, y), out);
    near = load(there);
  }
  EXPECT_EQ(device.bytesInUse, bytes);
  EXPECT_EQ(device.pinnedInUse, pinned);
  EXPECT_EQ(device.fencesInUse, fences);
}

TEST_F(DeviceModel, OutOfMemoryAnywhere) {
  device.finishAll();
  int64_t bytes = device.bytesInUse;
  bool isLoaded = false;
  for (int64_t n = 0; !isLoaded; ++n) {
    ASSERT_LT(n, 100);
    device.failAllocation = n;
    Options options;
    options.device = there;
    Result<Model> model = Model::load(readerForBoth(), options);
    isLoaded = model.ok();
    if (!isLoaded) {
      expectMessage(model.status(), "out of memory: cannot allocate");
      EXPECT_EQ(device.bytesInUse, bytes) << "nothing leaks";
    }
    if (n == 4) { // after the four variables
      expectMessage(model.status(), "cannot load the model, which plans 512 "
                                    "bytes, on 'cuda-emu:0'");
    }
  }
  device.failAllocation = -1;
  Model near = load(there), host = load(Device{});
  Tensor loss, pred, hostLoss;
  std::vector<Destination> out = {{"loss", &loss}, {"pred", &pred}};
  std::vector<Destination> hostOut = {{"loss", &hostLoss}};
  for (int64_t n = 0;; ++n) {
    ASSERT_LT(n, 100);
    device.failAllocation = n;
    Status status = near.forward(inputs(x, y), out).status();
    if (status)
      break;
    expectMessage(status, "out of memory");
    EXPECT_FALSE(loss.defined());
    device.failAllocation = -1;
    EXPECT_EQ(near.get("steps")->at(0), 0) << "nothing ran";
  }
  device.failAllocation = -1;
  ASSERT_TRUE(host.forward(inputs(x, y), hostOut));
  EXPECT_EQ(valuesOf(loss), valuesOf(hostLoss));
  EXPECT_EQ(near.get("steps")->at(0), 1);
}

TEST_F(DeviceModel, ALaunchThatFailsLeavesTheContext) {
  Model near = load(there);
  Result<Context> context = near.forward(inputs(x, y), {});
  ASSERT_TRUE(context);
  std::vector<Argument> ct = {{"loss", &one}};
  Tensor gw;
  std::vector<Destination> to = {{"w", &gw}};
  device.failsLaunches = true;
  EXPECT_EQ(near.backward(*context, ct, to).message(),
            "cannot run 'backward': launch 0: CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_TRUE(context->live());
  EXPECT_FALSE(gw.defined());
  Values w = valuesOf(*near.get("w"));
  expectMessage(near.step(inputs(x, y), {}), "CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_EQ(valuesOf(*near.get("w")), w);
  device.failsLaunches = false;
  ASSERT_TRUE(near.backward(*context, ct, to).ok());
  EXPECT_TRUE(gw.defined());
}

TEST_F(DeviceModel, ALostDevice) {
  int64_t bytes = device.bytesInUse;
  {
    Model near = load(there);
    Tensor loss = *Tensor::zeros(DType::F32, Sizes{});
    std::vector<Destination> out = {{"loss", &loss}};
    ASSERT_TRUE(near.step(inputs(x, y), out).ok());
    device.lost = true;
    expectMessage(near.step(inputs(x, y), out), "CUDA_ERROR_DEVICE_LOST");
    expectMessage(near.get("w")->onHost().status(), "CUDA_ERROR_DEVICE_LOST");
  }
  EXPECT_EQ(device.bytesInUse, bytes) << "memory can be released";
}

TEST_F(DeviceModel, GraphsAreAsked) {
  for (bool useGraphs : {true, false}) {
    Options options;
    options.device = there;
    options.useGraphs = useGraphs;
    Model near = *Model::load(readerForBoth(), options);
    device.graphs.clear();
    ASSERT_TRUE(near.step(inputs(x, y), {}).ok());
    EXPECT_EQ(device.graphs, std::vector<bool>{useGraphs});
  }
}

} // namespace
