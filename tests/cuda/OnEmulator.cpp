//===- OnEmulator.cpp - the test models, on the emulator ------------------===//
//
// See OnEmulator.h.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/OnEmulator.h"

#include "cuda/CudaDevice.h"
#include "cuda/emulator/Control.h"
#include "runtime/device/CodeObject.h"
#include "tests/runtime/TestModel.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

namespace tandem::test {

namespace {

/// A kernel of TestKernels.c: the floats of each parameter (0: one for each
/// item); the last one is written, and `scratch` floats come after it.
struct TestKernel {
  const char *name;
  std::vector<size_t> floats;
  size_t scratch = 0;
  int half = -1; ///< the parameter whose elements have two bytes
};
const TestKernel kernels[] = {{"predict", {24, 3, 1, 8}},
                              {"residual", {8, 8, 8}},
                              {"mean_square", {8, 1}},
                              {"grad_w", {24, 8, 1, 3}},
                              {"grad_b", {8, 1, 1}},
                              {"sgd", {0, 0, 1, 0}},
                              {"increment", {0, 0}},
                              {"square_scratch", {0, 0}, 16},
                              {"times_constant", {0, 4, 0}},
                              {"add", {0, 0, 0}},
                              {"mul", {0, 0, 0}},
                              {"twice", {0, 0}},
                              {"copy", {0, 0}},
                              {"to_half", {0, 0}, 0, 1},
                              {"from_half", {0, 0}, 0, 0},
                              {"all_finite", {3, 1, 1}},
                              {"sgd_scaled", {0, 0, 1, 1, 1, 0}},
                              {"next_scale", {1, 1, 1}}};
constexpr size_t kernelCount = std::size(kernels);

runtime::CodeObject &code() {
  static runtime::CodeObject loaded = [] {
    std::string bytes = kernelObject();
    return *runtime::CodeObject::load(
        std::as_bytes(std::span<const char>(bytes)));
  }();
  return loaded;
}

template <size_t number>
void twin(void **parameters, const TandemEmulatorLaunch *launch) {
  const TestKernel &kernel = kernels[number];
  int64_t items = launch->grid[0];
  std::vector<void *> buffers;
  auto use = [&](size_t p, size_t floats, bool isWrite) {
    void *data = *static_cast<void **>(parameters[p]);
    buffers.resize(std::max(buffers.size(), p + 1));
    buffers[p] = data;
    size_t bytes = static_cast<int>(p) == kernel.half ? 2 : sizeof(float);
    return launch->access(launch, data, floats * bytes, isWrite) != 0;
  };
  size_t count = kernel.floats.size();
  for (size_t p = 0; p < count; ++p) {
    size_t floats = kernel.floats[p] ? kernel.floats[p] : size_t(items);
    if (!use(p, floats, p + 1 == count))
      return;
  }
  void *scratch = nullptr;
  if (kernel.scratch) {
    if (!use(count, kernel.scratch, false) || !use(count, kernel.scratch, true))
      return;
    scratch = buffers[count];
  }
  code().find(kernel.name)(buffers.data(), 0, items, scratch);
  if (scratch)
    std::memset(scratch, 0, kernel.scratch * sizeof(float));
}

template <size_t... numbers>
void registerTwins(std::index_sequence<numbers...>) {
  auto one = [](const TestKernel &kernel, TandemEmulatorKernel function) {
    std::vector<size_t> bytes(kernel.floats.size() + (kernel.scratch != 0),
                              sizeof(void *));
    tandemEmulatorRegisterKernel(kernel.name, bytes.data(), bytes.size(),
                                 function);
  };
  (one(kernels[numbers], twin<numbers>), ...);
}

std::shared_ptr<const cuda::Driver> driver() {
  static const std::shared_ptr<const cuda::Driver> opened = [] {
    Result<cuda::Driver> driver = cuda::Driver::open(TANDEM_EMULATOR);
    EXPECT_TRUE(driver.ok()) << driver.status().message();
    return std::make_shared<const cuda::Driver>(*driver);
  }();
  return opened;
}

Result<std::shared_ptr<runtime::Backend>> open(int index) {
  return cuda::CudaDevice::open(driver(), {emulated.kind, index});
}

/// Every test ends with no finding.
class NoFindings : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo &) override {
    const char *policy = std::getenv("TANDEM_EMULATOR_POLICY");
    tandemEmulatorReset();
    tandemEmulatorSetPolicy(policy ? policy : "lazy");
  }
  void OnTestEnd(const ::testing::TestInfo &) override {
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
};

class Devices : public ::testing::Environment {
public:
  explicit Devices(int count) : count(count) {}
  void SetUp() override {
    tandemEmulatorSetDevices(count);
    emulatedDriver();
  }

private:
  int count;
};

const bool isSet = [] {
  registerTwins(std::make_index_sequence<kernelCount>());
  runtime::registerBackend(emulated.kind, open);
  testDevice() = tensorDevice() = emulated;
  ::testing::UnitTest::GetInstance()->listeners().Append(new NoFindings);
  return true;
}();

} // namespace

bool startWithDevices(int count) {
  ::testing::AddGlobalTestEnvironment(new Devices(count));
  return true;
}

const cuda::Driver &emulatedDriver() {
  cuda::driver::CUcontext context = nullptr;
  EXPECT_EQ((*driver())->devicePrimaryCtxRetain(&context, 0), 0);
  EXPECT_EQ((*driver())->ctxSetCurrent(context), 0);
  return *driver();
}

} // namespace tandem::test
