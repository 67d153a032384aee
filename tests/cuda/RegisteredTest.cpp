//===- RegisteredTest.cpp - data sets in memory that a device knows -------===//
//
// Host memory of the caller's that is registered with a device's driver: it is
// copied without a copy between, and is unregistered on every path.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Control.h"
#include "cuda/emulator/DriverEntries.h"
#include "runtime/c_api/CApi.h"
#include "tests/cuda/OnEmulator.h"
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::cuda::driver;

namespace {

using Values = std::vector<float>;
constexpr int64_t batches = 20, batchX = 24, batchY = 8;

/// All batches' numbers, one after the other.
Values numbers(int64_t count) {
  Values values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(1.7 * double(i))));
  return values;
}

tdm_tensor *registered(void *data, int64_t count) {
  tdm_tensor *tensor = nullptr;
  EXPECT_EQ(tdm_tensor_wrap_registered("cuda", data, TDM_F32, 1, &count,
                                       nullptr, &tensor),
            TDM_OK)
      << tdm_last_error();
  return tensor;
}

class Registered : public ::testing::Test {
protected:
  void SetUp() override {
    // The model's device is there, and what it keeps.
    tdm_tensor *any = nullptr;
    int64_t one = 1;
    ASSERT_EQ(tdm_tensor_zeros_on("cuda", TDM_F32, 1, &one, &any), TDM_OK);
    tdm_tensor_free(any);
    live = tandemEmulatorLiveAllocations();
  }
  /// Nothing stays registered.
  void TearDown() override { EXPECT_EQ(tdm_synchronize("cuda"), TDM_OK); }
  size_t live = 0;
};

TEST_F(Registered, MemoryIsCopiedFromWhereItIs) {
  Values x = numbers(64);
  tdm_tensor *tensor = registered(x.data(), 64), *copy = nullptr;
  EXPECT_EQ(tandemEmulatorLiveAllocations(), live + 1);
  EXPECT_STREQ(tdm_tensor_device(tensor), "cpu");
  EXPECT_EQ(tdm_tensor_data(tensor), x.data());
  uint64_t pinned = tandemEmulatorGetCounts().hostAllocations;
  ASSERT_EQ(tdm_tensor_copy_to(tensor, "cuda", &copy), TDM_OK);
  EXPECT_EQ(tandemEmulatorGetCounts().hostAllocations, pinned);
  Values got(64);
  EXPECT_EQ(tdm_tensor_read(copy, got.data(), 256), TDM_OK);
  EXPECT_EQ(got, x);
  tdm_tensor_free(copy);
  // A view keeps it.
  tdm_tensor *view = nullptr;
  int64_t shape = 8, stride = 1;
  ASSERT_EQ(tdm_tensor_view(tensor, 1, &shape, &stride, 3, &view), TDM_OK);
  tdm_tensor_free(tensor);
  ASSERT_EQ(tdm_tensor_copy_to(view, "cuda", &copy), TDM_OK);
  // Whose end waits for what reads the memory.
  tdm_tensor_free(view);
  x.assign(64, 7);
  got.resize(8);
  EXPECT_EQ(tdm_tensor_read(copy, got.data(), 32), TDM_OK);
  EXPECT_EQ(got[1], numbers(64)[4]);
  tdm_tensor_free(copy);
}

// Who reads or writes by a pointer, or sets a parameter, may use the memory at
// once, also where the device itself copies from there and to there.
TEST_F(Registered, ReadsAndWritesAreDoneOnReturn) {
  tandemEmulatorSetPolicy("lazy");
  Values host(64), got(64);
  const Values first = numbers(64), second(64, 200);
  const size_t bytes = 64 * sizeof(float);
  int64_t count = 64;
  tdm_tensor *tensor = registered(host.data(), count), *there = nullptr;
  ASSERT_EQ(tdm_tensor_zeros_on("cuda", TDM_F32, 1, &count, &there), TDM_OK);
  ASSERT_EQ(tdm_tensor_write(there, first.data(), bytes), TDM_OK);
  ASSERT_EQ(tdm_tensor_read(there, host.data(), bytes), TDM_OK);
  EXPECT_EQ(host, first);
  ASSERT_EQ(tdm_tensor_write(there, host.data(), bytes), TDM_OK);
  host = second;
  ASSERT_EQ(tdm_tensor_read(there, got.data(), bytes), TDM_OK);
  EXPECT_EQ(got, first);
  // Into the tensor.
  ASSERT_TRUE(tensor->tensor.copyFrom(there->tensor).ok());
  EXPECT_EQ(host, first);
  tdm_tensor_free(there);
  tdm_tensor_free(tensor);

  tdm_model model{modelFor(regression())};
  runtime::Tensor w = *model.model.get("w");
  Values value(static_cast<size_t>(w.elements()), 3);
  tdm_tensor *flat = registered(value.data(), w.elements()), *set = nullptr;
  std::vector<int64_t> steps(w.shape().size(), 1);
  for (size_t i = steps.size(); i-- > 1;)
    steps[i - 1] = steps[i] * w.shape()[i];
  ASSERT_EQ(
      tdm_tensor_view(flat, w.rank(), w.shape().data(), steps.data(), 0, &set),
      TDM_OK);
  ASSERT_EQ(tdm_set(&model, "w", set), TDM_OK) << tdm_last_error();
  value.assign(value.size(), 5);
  EXPECT_EQ(valuesOf(*model.model.get("w")->onHost()), Values(value.size(), 3));
  tdm_tensor_free(flat);
  tdm_tensor_free(set);
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
}

// Its end waits for the copies that there are, of each device, and for nothing
// that would disturb a capture.
TEST_F(Registered, EndsBesideACapture) {
  tandemEmulatorSetPolicy("lazy");
  Values x = numbers(64), got(64);
  const Values first = x;
  tdm_tensor *tensor = registered(x.data(), 64), *copy = nullptr;
  ASSERT_EQ(tdm_tensor_copy_to(tensor, "cuda", &copy), TDM_OK);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
  CUstream recorder = nullptr;
  ASSERT_EQ(cuStreamCreate(&recorder, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(recorder, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  tdm_tensor_free(tensor);
  x.assign(64, 8);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(recorder, &graph), CUDA_SUCCESS);
  EXPECT_EQ(tdm_tensor_read(copy, got.data(), 256), TDM_OK);
  EXPECT_EQ(got, first);
  tdm_tensor_free(copy);
  if (graph)
    cuGraphDestroy(graph);
  cuStreamDestroy_v2(recorder);
  cuCtxPopCurrent_v2(&context);
  cuDevicePrimaryCtxRelease_v2(0);
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
}

TEST_F(Registered, WhatCannotBeIsAnError) {
  Values x = numbers(64);
  int64_t count = 64, part = 16;
  tdm_tensor *tensor = registered(x.data(), count), *other = nullptr;
  EXPECT_EQ(tdm_tensor_wrap_registered("cuda", x.data() + 8, TDM_F32, 1, &part,
                                       nullptr, &other),
            TDM_FAILED);
  EXPECT_NE(std::string(tdm_last_error())
                .find("device 'cuda:0': cannot register 64 bytes of host "
                      "memory: cuMemHostRegister failed: "
                      "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
            std::string::npos)
      << tdm_last_error();
  tdm_tensor_free(tensor);
  // Now it is nobody's, and so it can be had again.
  tdm_tensor_free(registered(x.data(), count));
  tandemEmulatorSetTraits("no-registering");
  EXPECT_EQ(tdm_tensor_wrap_registered("cuda", x.data(), TDM_F32, 1, &count,
                                       nullptr, &other),
            TDM_FAILED);
  EXPECT_NE(std::string(tdm_last_error()).find("CUDA_ERROR_NOT_SUPPORTED"),
            std::string::npos)
      << tdm_last_error();
  EXPECT_EQ(tdm_tensor_wrap_registered(nullptr, x.data(), TDM_F32, 1, &count,
                                       nullptr, &other),
            TDM_USAGE);
  EXPECT_EQ(tdm_tensor_wrap_registered("cuda", nullptr, TDM_F32, 1, &count,
                                       nullptr, &other),
            TDM_USAGE);
  EXPECT_EQ(other, nullptr);
  // Of the host there is nothing to do, and of no elements.
  ASSERT_EQ(tdm_tensor_wrap_registered("cpu", x.data(), TDM_F32, 1, &count,
                                       nullptr, &other),
            TDM_OK);
  tdm_tensor_free(other);
  other = nullptr;
  int64_t none = 0;
  EXPECT_EQ(tdm_tensor_wrap_registered("cuda", nullptr, TDM_F32, 1, &none,
                                       nullptr, &other),
            TDM_OK);
  tdm_tensor_free(other);
  EXPECT_EQ(tandemEmulatorLiveAllocations(), live);
}

// A file that was mapped to be read.
TEST_F(Registered, ReadOnlyMemory) {
  const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  void *page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Values values = numbers(count), got(values.size());
  std::copy(values.begin(), values.end(), static_cast<float *>(page));
  ASSERT_EQ(::mprotect(page, bytes, PROT_READ), 0);
  tdm_tensor *tensor = registered(page, count), *copy = nullptr;
  ASSERT_EQ(tdm_tensor_copy_to(tensor, "cuda", &copy), TDM_OK);
  EXPECT_EQ(tdm_tensor_read(copy, got.data(), bytes), TDM_OK);
  EXPECT_EQ(got, values);
  tdm_tensor_free(tensor);
  tdm_tensor_free(copy);
  ::munmap(page, bytes);
}

struct DataSet {
  tdm_tensor *x, *y;
  bool isRegistered = false;
};

tdm_status next(void *user, int64_t batch, const tdm_argument *inputs,
                size_t count, int *isEnd) {
  auto &set = *static_cast<DataSet *>(user);
  *isEnd = batch == batches;
  // From now on it may be written.
  if (set.isRegistered && batch >= 2)
    tandemEmulatorHostAccess(static_cast<float *>(tdm_tensor_data(set.x)) +
                                 (batch - 2) * batchX,
                             batchX * sizeof(float), 1);
  for (size_t i = 0; i < count && !*isEnd; ++i) {
    tdm_tensor *view = nullptr;
    const int64_t shapeX[] = {8, 3}, shapeY[] = {8}, stepsX[] = {3, 1},
                  stepsY[] = {1};
    bool isX = inputs[i].name[0] == 'x';
    if (tdm_status status = tdm_tensor_view(
            isX ? set.x : set.y, isX ? 2 : 1, isX ? shapeX : shapeY,
            isX ? stepsX : stepsY, batch * (isX ? batchX : batchY), &view))
      return status;
    tdm_status status = tdm_tensor_assign(inputs[i].tensor, view);
    tdm_tensor_free(view);
    if (status)
      return status;
  }
  return TDM_OK;
}

TEST_F(Registered, BatchesOfATrainingAreNotCopiedBetween) {
  Values x = numbers(batches * batchX), y = numbers(batches * batchY);
  auto train = [&](DataSet set) {
    runtime::Options options;
    options.seed = 3;
    tdm_model model{modelFor(regression(), options)};
    tdm_feed feed = TDM_FEED_INIT;
    feed.user = &set;
    feed.next = next;
    int64_t steps = 0;
    EXPECT_EQ(tdm_train(&model, nullptr, &feed, nullptr, 0, &steps), TDM_OK)
        << tdm_last_error();
    EXPECT_EQ(steps, batches);
    return valuesOf(*model.model.get("w")->onHost());
  };
  DataSet plain = {}, pinned = {};
  int64_t countX = batches * batchX, countY = batches * batchY;
  ASSERT_EQ(tdm_tensor_wrap(x.data(), TDM_F32, 1, &countX, nullptr, &plain.x),
            TDM_OK);
  ASSERT_EQ(tdm_tensor_wrap(y.data(), TDM_F32, 1, &countY, nullptr, &plain.y),
            TDM_OK);
  Values expected = train(plain);
  tdm_tensor_free(plain.x);
  tdm_tensor_free(plain.y);
  pinned = {registered(x.data(), countX), registered(y.data(), countY), true};
  EXPECT_EQ(train(pinned), expected);
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  // It is the device that reads the data set: who writes to the batch behind
  // its step, and before the one two behind is asked for, is found.
  {
    tdm_model model{modelFor(regression())};
    tdm_feed feed = TDM_FEED_INIT;
    feed.user = &pinned;
    feed.next = next;
    feed.stepped = [](void *user, int64_t, int *) {
      auto &set = *static_cast<DataSet *>(user);
      tandemEmulatorHostAccess(tdm_tensor_data(set.x), batchX * sizeof(float),
                               1);
      return TDM_OK;
    };
    feed.steps = 1;
    ASSERT_EQ(tdm_train(&model, nullptr, &feed, nullptr, 0, nullptr), TDM_OK);
  }
  ASSERT_GE(tandemEmulatorErrorCount(), 1u);
  EXPECT_NE(std::string(tandemEmulatorFirstError()).find("the host writes"),
            std::string::npos)
      << tandemEmulatorFirstError();
  tandemEmulatorClearErrors();
  tdm_tensor_free(pinned.x);
  tdm_tensor_free(pinned.y);
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
}

} // namespace
