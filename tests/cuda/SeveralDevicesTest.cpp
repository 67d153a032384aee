//===- SeveralDevicesTest.cpp - models on two devices of a process --------===//
//
// Two models on the devices 0 and 1 of the emulator, in one thread by turns and
// in two: each call makes its device's context the current one and puts back
// what was. What belongs to one device is copied where the API promises
// copies, and refused by name elsewhere.
//
//===----------------------------------------------------------------------===//
#include "cuda/CudaDevice.h"
#include "cuda/emulator/Control.h"
#include "tests/cuda/OnEmulator.h"
#include "tests/runtime/TestModel.h"

#include <gtest/gtest.h>
#include <optional>
#include <thread>

using namespace tandem;
using namespace tandem::test;
using runtime::Argument;
using runtime::Backend;
using runtime::Destination;
using runtime::Device;
using runtime::Model;
using runtime::StreamScope;
using runtime::Tensor;

namespace {

using Values = std::vector<float>;
constexpr Device first = emulated, second{emulated.kind, 1};

[[maybe_unused]] const bool twoDevices = startWithDevices(2);

class SeveralDevices : public ::testing::Test {
protected:
  Model load(Device device, bool useGraphs = true) {
    runtime::Options options;
    options.seed = 3;
    options.device = device;
    options.useGraphs = useGraphs;
    Result<Model> model =
        Model::load(readerFor(forDevice(regression())), options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(*model);
  }
  /// Losses and parameters of some steps; the inputs are on the host.
  static void step(Model &model, Values &seen) {
    Tensor x = *sampleX().onHost(), y = *sampleY().onHost(), loss;
    Argument inputs[] = {{"x", &x}, {"y", &y}};
    Destination outputs[] = {{"loss", &loss}};
    Status status = model.run("step", inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(loss.device(), model.device());
    seen.push_back(valuesOf(*loss.onHost())[0]);
  }
  static Values parameters(const Model &model) {
    return valuesOf(*model.get("w")->onHost());
  }
  /// Of a device that is alone.
  Values expected(int steps) {
    Model alone = load(first);
    Values seen;
    for (int i = 0; i < steps; ++i)
      step(alone, seen);
    for (float value : parameters(alone))
      seen.push_back(value);
    return seen;
  }
};

TEST_F(SeveralDevices, ModelsByTurnsInOneThread) {
  const Values wanted = expected(4);
  cuda::driver::CUcontext before = nullptr, after = nullptr;
  const cuda::Driver &driver = emulatedDriver();
  for (bool useGraphs : {false, true}) {
    Model a = load(first, useGraphs), b = load(second, useGraphs);
    EXPECT_EQ(a.device(), first);
    EXPECT_EQ(b.device(), second);
    EXPECT_EQ(driver->ctxGetCurrent(&before), 0);
    Values ofA, ofB;
    for (int i = 0; i < 4; ++i) {
      step(a, ofA);
      step(b, ofB);
    }
    for (auto [model, seen] : {std::pair(&a, &ofA), std::pair(&b, &ofB)})
      for (float value : parameters(*model))
        seen->push_back(value);
    EXPECT_EQ(ofA, wanted);
    EXPECT_EQ(ofB, wanted);
    EXPECT_EQ(driver->ctxGetCurrent(&after), 0);
    EXPECT_EQ(before, after);
  }
}

TEST_F(SeveralDevices, ModelsInTwoThreads) {
  const Values wanted = expected(8);
  Model a = load(first), b = load(second);
  Values seen[2];
  std::thread threads[2];
  Model *models[] = {&a, &b};
  for (int t : {0, 1})
    threads[t] = std::thread([&, t] {
      Backend &backend = **runtime::backendOf(models[t]->device());
      StreamScope scope(models[t]->device(), *backend.side(12));
      for (int i = 0; i < 8; ++i)
        step(*models[t], seen[t]);
      for (float value : parameters(*models[t]))
        seen[t].push_back(value);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(seen[0], wanted);
  EXPECT_EQ(seen[1], wanted);
}

TEST_F(SeveralDevices, TensorsOfTheOtherDeviceAreNamed) {
  Model a = load(first);
  Tensor x = *(*sampleX().onHost()).copyTo(second), y = *sampleY().onHost();
  Tensor loss = *Tensor::zeros(artifact::DType::F32, {}, second);
  Argument inputs[] = {{"x", &x}, {"y", &y}};
  Destination outputs[] = {{"loss", &loss}};
  Status status = a.run("step", inputs, outputs);
  EXPECT_EQ(status.code(), Code::Usage);
  for (const char *part : {"input 'x' (index 0): expected device 'cuda:0' or "
                           "'cpu' but got 'cuda:1'",
                           "output 'loss' (index 0): expected device 'cuda:0' "
                           "or 'cpu' but got 'cuda:1'"})
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  // A parameter is set by a copy, from wherever.
  Tensor w = *tensorOf({5, 6, 7}, {3}).copyTo(second);
  EXPECT_EQ(a.set("w", w).message(), "");
  EXPECT_EQ(parameters(a), (Values{5, 6, 7}));
}

// The copy waits for the stream of the other device, and that for the copy; the
// host for neither.
TEST_F(SeveralDevices, CopiesBetweenDevices) {
  Tensor x = *tensorOf({1, 2, 3, 4, 5, 6}, {2, 3}).onHost();
  for (Device from : {first, second}) {
    Device to = from == first ? second : first;
    StreamScope here(from, *(*runtime::backendOf(from))->side(12));
    StreamScope there(to, *(*runtime::backendOf(to))->side(13));
    Tensor source = *x.copyTo(from);
    Tensor target = *Tensor::zeros(artifact::DType::F32, source.shape(), to);
    tandemEmulatorDelay(runtime::currentStream(from), 1000000);
    uint64_t syncs = tandemEmulatorGetCounts().syncs;
    EXPECT_EQ(target.copyFrom(source).message(), "");
    EXPECT_EQ(tandemEmulatorGetCounts().syncs, syncs);
    EXPECT_EQ(source.fill(-1).message(), "");
    source = Tensor(); // its bytes may be another one's at once
    Tensor other = *Tensor::empty(artifact::DType::F32, x.shape(), from);
    EXPECT_EQ(other.fill(-2).message(), "");
    EXPECT_EQ(valuesOf(*target.onHost()), valuesOf(*x.onHost()));
    // Of any strides.
    std::vector<int64_t> shape{3, 2}, strides{1, 3};
    Tensor turned = *(*x.copyTo(from)).view(shape, strides, 0);
    EXPECT_EQ(valuesOf(*(*turned.copyTo(to)).onHost()),
              (Values{1, 4, 2, 5, 3, 6}));
  }
}

// Devices of two drivers: one was given the other's pointers, and the emulator
// read a GPU's addresses on the host.
TEST_F(SeveralDevices, CopiesBetweenTwoDriversGoThroughTheHost) {
  runtime::registerBackend(
      runtime::DeviceKind::CudaEmu,
      [](int index) -> Result<std::shared_ptr<Backend>> {
        return cuda::CudaDevice::open(
            std::make_shared<const cuda::Driver>(emulatedDriver()),
            {runtime::DeviceKind::CudaEmu, index});
      });
  const Device other{runtime::DeviceKind::CudaEmu, 0};
  Tensor here = tensorOf({1, 2, 3}, {3});
  tandemEmulatorClearLog();
  tandemEmulatorSetLogging(1);
  Tensor there = *here.copyTo(other);
  for (size_t i = 0; i < tandemEmulatorLogSize(); ++i)
    EXPECT_EQ(std::string(tandemEmulatorLogLine(i)).find("copy on device"),
              std::string::npos)
        << tandemEmulatorLogLine(i);
  EXPECT_EQ(valuesOf(*there.onHost()), (Values{1, 2, 3}));
  EXPECT_EQ(valuesOf(*(*there.copyTo(first)).onHost()), (Values{1, 2, 3}));
}

TEST_F(SeveralDevices, ADeviceThatIsNotThere) {
  runtime::Options options;
  options.device = Device{emulated.kind, 7};
  Result<Model> model =
      Model::load(readerFor(forDevice(regression())), options);
  EXPECT_EQ(model.status().code(), Code::NoDevice);
  EXPECT_NE(model.status().message().find(
                "no device 'cuda:7': expected one of 'cuda:0' (Tandem CUDA "
                "emulator), 'cuda:1' (Tandem CUDA emulator)"),
            std::string::npos)
      << model.status().message();
}

// Memory that one device registered ends behind the copies of another.
TEST_F(SeveralDevices, RegisteredMemoryWaitsForAllDevices) {
  Values values(64, 7);
  const int64_t shape[] = {64};
  Result<Tensor> given = Tensor::wrapRegistered(
      first, values.data(), artifact::DType::F32, shape, {});
  ASSERT_TRUE(given.ok()) << given.status().message();
  Tensor there;
  {
    Tensor last = *std::move(given);
    there = *last.copyTo(second);
  }
  values.assign(64, 8);
  EXPECT_EQ(valuesOf(*there.onHost()), Values(64, 7));
}

// A load that is beyond the limit leaves nothing; the next one works.
TEST_F(SeveralDevices, ALimitOfMemoryOfOneDevice) {
  Backend &backend = **runtime::backendOf(second);
  size_t live = 0;
  {
    Model b = load(second); // what the device keeps for the next use
    live = tandemEmulatorLiveAllocations();
  }
  runtime::Options options;
  options.device = second;
  options.memoryLimit = 1024;
  Result<Model> model =
      Model::load(readerFor(forDevice(regression())), options);
  EXPECT_EQ(model.status().code(), Code::Failed);
  for (const char *part : {"out of memory on device 'cuda:1': expected ",
                           " in use, but the limit that was set is 1024"})
    EXPECT_NE(model.status().message().find(part), std::string::npos)
        << model.status().message();
  EXPECT_LE(tandemEmulatorLiveAllocations(), live);
  // The other device has none.
  Values seen;
  Model a = load(first);
  step(a, seen);
  EXPECT_EQ(backend.memoryLimit(), 0); // nor a limit
  Model b = load(second);
  step(b, seen);
  EXPECT_EQ(seen[0], seen[1]);
  options.memoryLimit = -5;
  EXPECT_EQ(Model::load(readerFor(forDevice(regression())), options)
                .status()
                .message(),
            "device 'cuda:1': expected a memory limit of at least 0 bytes but "
            "got -5");
  options.device = Device{};
  EXPECT_EQ(Model::load(readerFor(regression()), options).status().message(),
            "memory limits are for GPUs, and the device is 'cpu'");
}

} // namespace
