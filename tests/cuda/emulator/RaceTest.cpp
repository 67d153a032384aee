//===- RaceTest.cpp - missing waits are errors, under every policy --------===//
#include "EmulatorTest.h"

#include "cuda/BuiltinKernels.h"

using namespace tandem::cuda;
using namespace tandem::test;

namespace {
class Race : public EveryPolicy {
protected:
  /// Copies up on `a`, computes on `b`, copies down on `a`, and returns what
  /// came; `b` waits for `a` and `a` for `b` only if asked.
  std::vector<float> step(bool bWaits, bool aWaits, bool hostWaits = true) {
    CUstream a = stream(), b = stream();
    CUdeviceptr x = array(), y = array();
    float *in = pinned(), *out = pinned();
    std::fill(in, in + kElements, 41.f);
    EXPECT_CU(cuMemcpyHtoDAsync_v2(x, in, kBytes, a));
    if (bWaits)
      order(a, b);
    EXPECT_CU(launch(y, x, b));
    if (aWaits)
      order(b, a);
    EXPECT_CU(cuMemcpyDtoHAsync_v2(out, y, kBytes, a));
    if (hostWaits) {
      EXPECT_CU(cuStreamSynchronize(a));
    }
    tandemEmulatorHostAccess(out, kBytes, 0);
    return {out, out + kElements};
  }
};
TANDEM_EVERY_POLICY(Race);
} // namespace

TEST_P(Race, AllWaits) {
  EXPECT_EQ(step(true, true), std::vector<float>(kElements, 42.f));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
}

TEST_P(Race, ReadBeforeWrite) {
  step(false, true);
  expectOneError({"kernel 'test_increment'", "copy to device", "s1", "s2",
                  "memory", "nothing orders the two"});
}

TEST_P(Race, ResultTakenTooEarly) {
  step(true, false);
  expectOneError({"kernel 'test_increment'", "copy to host"});
}

TEST_P(Race, HostReadsTooEarly) {
  step(true, true, false);
  expectOneError({"the host reads", "copy to host", "writes"});
}

TEST_P(Race, WriteAfterRead) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, b));
  expectOneError({"memset, 4096 bytes", "kernel 'test_increment'", "reads"});
}

// Two reads, and uses of neighbouring bytes, are none.
TEST_P(Race, WhatIsNone) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, x, b));
  CUdeviceptr bytes = array(64);
  EXPECT_CU(cuMemsetD8Async(bytes, 1, 13, a));
  EXPECT_CU(cuMemsetD8Async(bytes + 13, 2, 51, b));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
  EXPECT_CU(cuMemsetD8Async(bytes + 12, 3, 1, b));
  expectOneError({"at byte 12"});
}

// A write within what another one wrote leaves the rest to that one.
TEST_P(Race, PartsOfWrites) {
  CUstream a = stream(), b = stream(), c = stream();
  CUdeviceptr x = array(96), y = array(96);
  EXPECT_CU(cuMemsetD8Async(x, 1, 96, a));
  order(a, b);
  EXPECT_CU(cuMemsetD8Async(x + 32, 2, 32, b));
  order(b, a);
  EXPECT_CU(cuMemsetD8Async(x + 48, 3, 8, a));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
  EXPECT_CU(cuMemcpyDtoDAsync_v2(y, x + 72, 8, c));
  expectOneError({"at byte 72", "memset, 96 bytes"});
  EXPECT_CU(cuMemcpyDtoDAsync_v2(y, x + 56, 8, c));
  expectOneError({"at byte 56", "memset, 32 bytes"});
  EXPECT_CU(cuMemcpyDtoDAsync_v2(y, x + 52, 1, c));
  expectOneError({"at byte 52", "memset, 8 bytes"});
  EXPECT_CU(cuMemcpyDtoDAsync_v2(y, x, 8, c));
  expectOneError({"at byte 0", "memset, 96 bytes"});
}

// Every second element, in more pieces than are kept apart.
TEST_P(Race, ManyPieces) {
  constexpr size_t count = 70000;
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(4 * count), y = array(8 * count);
  CUmodule module = nullptr;
  CUfunction copy = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, builtinKernels().c_str()));
  EXPECT_CU(cuModuleGetFunction(&copy, module, "tandem_copy_b32"));
  CopyParameters p;
  p.to = y;
  p.from = x;
  p.elements = p.layout.sizes[0] = count;
  p.layout.toStrides[0] = 8;
  p.layout.fromStrides[0] = 4;
  void *parameters[] = {&p.to, &p.from, &p.elements, &p.layout};
  EXPECT_CU(
      cuLaunchKernel(copy, 1, 1, 1, 256, 1, 1, 0, a, parameters, nullptr));
  for (size_t i : {size_t(0), count / 2, count - 1})
    EXPECT_CU(cuMemsetD8Async(y + 8 * i + 4, 0, 4, b));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
  for (size_t i : {size_t(0), count / 2, count - 1}) {
    EXPECT_CU(cuMemsetD8Async(y + 8 * i + 3, 0, 1, b));
    expectOneError({"kernel 'tandem_copy_b32'", "memset, 1 bytes"});
  }
  EXPECT_CU(cuModuleUnload(module));
}

// An event is recorded before the work that matters.
TEST_P(Race, EventTooEarly) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  order(a, b);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, y, b));
  expectOneError({"kernel 'test_increment' (operation"});
}

// The host's wait for one stream orders nothing of another one.
TEST_P(Race, HostWaitsForTheOther) {
  CUstream a = stream(), b = stream(), c = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuStreamSynchronize(c));
  EXPECT_CU(launch(z, y, b));
  EXPECT_EQ(takeErrors().size(), 1u);
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_CU(launch(z, y, b));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
}

// What happens in order through a third stream is in order.
TEST_P(Race, OrderThroughAThird) {
  CUstream a = stream(), b = stream(), c = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  order(a, c);
  order(c, b);
  EXPECT_CU(launch(z, y, b));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(get(z), 3.f);
}

TEST_P(Race, StagingBufferReusedTooEarly) {
  CUstream a = stream();
  CUdeviceptr x = array();
  float *in = pinned();
  std::fill(in, in + kElements, 1.f);
  EXPECT_CU(cuMemcpyHtoDAsync_v2(x, in, kBytes, a));
  tandemEmulatorHostAccess(in, kBytes, 1);
  expectOneError({"the host writes", "copy to device", "reads"});
  EXPECT_CU(cuStreamSynchronize(a));
  tandemEmulatorHostAccess(in, kBytes, 1);
}

// Errors that nobody has asked for are printed at the end.
TEST_P(Race, PrintedAtTheEnd) {
  EXPECT_EXIT(
      {
        step(true, false);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0),
      "cuda emulator: .*copy to host.*\ncuda emulator: errors: 1\n");
}

// A layer above asks after its waits.
TEST_P(Race, FirstError) {
  EXPECT_EQ(tandemEmulatorFirstError(), nullptr);
  step(true, false);
  ASSERT_NE(tandemEmulatorFirstError(), nullptr);
  EXPECT_NE(std::string(tandemEmulatorFirstError()).find("copy to host"),
            std::string::npos);
  takeErrors();
}
