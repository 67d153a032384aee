//===- EmulatorTest.cpp - a program that uses the emulated driver ---------===//
#include "EmulatorTest.h"

#include <cstring>

using namespace tandem::test;

namespace {
constexpr char incrementText[] = ".version 7.0\n.target sm_80\n"
                                 ".visible .entry test_increment(\n"
                                 "  .param .u64 to_, .param .u64 from_)\n";

/// The twin of the kernel that the text above stands for.
void incrementTwin(void **parameters, const TandemEmulatorLaunch *launch) {
  float *to, *from;
  std::memcpy(&to, parameters[0], sizeof(to));
  std::memcpy(&from, parameters[1], sizeof(from));
  if (!launch->access(launch, from, kBytes, 0) ||
      !launch->access(launch, to, kBytes, 1))
    return;
  for (size_t i = 0; i < kElements; ++i)
    to[i] = from[i] + 1;
}
} // namespace

std::string tandem::test::nameOf(CUresult result) {
  const char *name = nullptr;
  return cuGetErrorName(result, &name) ? "CUresult " + std::to_string(result)
                                       : name;
}

void Emulator::SetUp() {
  tandemEmulatorReset();
  ASSERT_CU(cuInit(0));
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context, 0));
  ASSERT_CU(cuCtxSetCurrent(context));
  const size_t bytes[] = {sizeof(void *), sizeof(void *)};
  tandemEmulatorRegisterKernel("test_increment", bytes, 2, incrementTwin);
  ASSERT_CU(cuModuleLoadData(&module, incrementText));
  ASSERT_CU(cuModuleGetFunction(&increment, module, "test_increment"));
}

void Emulator::TearDown() {
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
  tandemEmulatorReset();
  for (CUdeviceptr pointer : arrays)
    EXPECT_CU(cuMemFree_v2(pointer));
  for (float *pointer : pins)
    EXPECT_CU(cuMemFreeHost(pointer));
  for (CUevent event : events)
    EXPECT_CU(cuEventDestroy_v2(event));
  for (CUstream stream : streams)
    EXPECT_CU(cuStreamDestroy_v2(stream));
  EXPECT_CU(cuModuleUnload(module));
  EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_CU(cuCtxSetCurrent(nullptr));
  EXPECT_EQ(tandemEmulatorLiveAllocations(), 0u);
  for (const char *kind :
       {"stream", "event", "module", "graph", "exec", "pool"})
    EXPECT_EQ(tandemEmulatorLiveHandles(kind), 0u) << kind;
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
}

CUdeviceptr Emulator::array(size_t bytes) {
  CUdeviceptr result = 0;
  EXPECT_CU(cuMemAlloc_v2(&result, bytes));
  arrays.push_back(result);
  return result;
}

float *Emulator::pinned() {
  void *result = nullptr;
  EXPECT_CU(cuMemHostAlloc(&result, kBytes, 0));
  pins.push_back(static_cast<float *>(result));
  return pins.back();
}

CUstream Emulator::stream(unsigned flags) {
  CUstream result = nullptr;
  EXPECT_CU(cuStreamCreate(&result, flags));
  streams.push_back(result);
  return result;
}

CUevent Emulator::event(unsigned flags) {
  CUevent result = nullptr;
  EXPECT_CU(cuEventCreate(&result, flags));
  events.push_back(result);
  return result;
}

void Emulator::order(CUstream from, CUstream to) {
  CUevent between = event(CU_EVENT_DISABLE_TIMING);
  EXPECT_CU(cuEventRecord(between, from));
  EXPECT_CU(cuStreamWaitEvent(to, between, 0));
}

CUresult Emulator::launch(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  void *parameters[] = {&to, &from};
  return cuLaunchKernel(increment, kElements / 256, 1, 1, 256, 1, 1, 0, stream,
                        parameters, nullptr);
}

void Emulator::set(CUdeviceptr to, float value) {
  const std::vector<float> values(kElements, value);
  EXPECT_CU(cuMemcpyHtoD_v2(to, values.data(), kBytes));
}

float Emulator::get(CUdeviceptr from) {
  std::vector<float> values(kElements);
  EXPECT_CU(cuMemcpyDtoH_v2(values.data(), from, kBytes));
  for (float value : values)
    if (std::memcmp(&value, values.data(), sizeof(value)) != 0)
      ADD_FAILURE() << value << " beside " << values[0];
  return values[0];
}

std::vector<std::string> Emulator::takeErrors() {
  std::vector<std::string> texts;
  const uint64_t count = tandemEmulatorErrorCount();
  for (size_t i = 0; const char *text = tandemEmulatorError(i); ++i)
    texts.push_back(text);
  EXPECT_EQ(texts.size(), count);
  tandemEmulatorClearErrors();
  return texts;
}

std::vector<std::string> Emulator::takeLog() {
  std::vector<std::string> lines;
  for (size_t i = 0; i < tandemEmulatorLogSize(); ++i)
    lines.push_back(tandemEmulatorLogLine(i));
  tandemEmulatorClearLog();
  return lines;
}

void Emulator::expectOneError(const std::vector<std::string> &parts) {
  const std::vector<std::string> errors = takeErrors();
  ASSERT_EQ(errors.size(), 1u) << ::testing::PrintToString(errors);
  for (const std::string &part : parts)
    EXPECT_NE(errors[0].find(part), std::string::npos)
        << "expected '" << part << "' in: " << errors[0];
}

void EveryPolicy::SetUp() {
  Emulator::SetUp();
  ASSERT_EQ(tandemEmulatorSetPolicy(GetParam()), 0);
}
