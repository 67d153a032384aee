//===- TimeTest.cpp - virtual time ----------------------------------------===//
#include "EmulatorTest.h"

using namespace tandem::test;

namespace {
class Time : public EveryPolicy {
protected:
  float between(CUevent from, CUevent to) {
    float milliseconds = -1;
    EXPECT_CU(cuEventElapsedTime(&milliseconds, from, to));
    return milliseconds;
  }
};
TANDEM_EVERY_POLICY(Time);
constexpr uint64_t kMillisecond = 1000000;
} // namespace

// Branches overlap: the whole takes as long as the longest way through.
TEST_P(Time, BranchesOverlap) {
  CUstream a = stream(), b = stream(), c = stream();
  CUevent begin = event(), end = event();
  EXPECT_CU(cuEventRecord(begin, a));
  order(a, b);
  order(a, c);
  EXPECT_EQ(tandemEmulatorDelay(b, 30 * kMillisecond), 0);
  EXPECT_EQ(tandemEmulatorDelay(c, 20 * kMillisecond), 0);
  EXPECT_EQ(tandemEmulatorDelay(a, 5 * kMillisecond), 0);
  order(b, a);
  order(c, a);
  EXPECT_EQ(tandemEmulatorDelay(a, 2 * kMillisecond), 0);
  EXPECT_CU(cuEventRecord(end, a));
  EXPECT_CU(cuEventSynchronize(end));
  EXPECT_FLOAT_EQ(between(begin, end), 32.f);
  EXPECT_EQ(tandemEmulatorHostTime(), 32 * kMillisecond);
  EXPECT_EQ(tandemEmulatorEndTime(), 32 * kMillisecond);
}

TEST_P(Time, OneStreamAddsUp) {
  CUstream a = stream();
  CUevent begin = event(), end = event();
  EXPECT_CU(cuEventRecord(begin, a));
  EXPECT_EQ(tandemEmulatorDelay(a, 30 * kMillisecond), 0);
  EXPECT_EQ(tandemEmulatorDelay(a, 20 * kMillisecond), 0);
  EXPECT_CU(cuEventRecord(end, a));
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_FLOAT_EQ(between(begin, end), 50.f);
  EXPECT_FLOAT_EQ(between(end, begin), -50.f);
}

// Work that is submitted after a wait of the host starts after it.
TEST_P(Time, TheHostMovesOn) {
  CUstream a = stream(), b = stream();
  EXPECT_EQ(tandemEmulatorDelay(a, 10 * kMillisecond), 0);
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_EQ(tandemEmulatorDelay(b, 1 * kMillisecond), 0);
  EXPECT_EQ(tandemEmulatorEndTime(), 11 * kMillisecond);
}

TEST_P(Time, NextOperationTakesLonger) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  CUevent begin = event(), middle = event(), end = event();
  EXPECT_CU(cuEventRecord(begin, a));
  EXPECT_EQ(tandemEmulatorDelayNext(a, 7 * kMillisecond), 0);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuEventRecord(middle, a));
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuEventRecord(end, a));
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_GT(between(begin, middle), 7.f);
  EXPECT_LT(between(begin, middle), 7.1f);
  EXPECT_GT(between(middle, end), 0.f);
  EXPECT_LT(between(middle, end), 0.1f);
}

TEST_P(Time, OfEventsThatHaveNone) {
  CUstream a = stream();
  CUevent begin = event(), end = event(),
          other = event(CU_EVENT_DISABLE_TIMING);
  float milliseconds = 0;
  EXPECT_CU_ERROR(cuEventElapsedTime(&milliseconds, begin, end),
                  INVALID_HANDLE);
  EXPECT_CU(cuEventRecord(begin, a));
  EXPECT_CU(cuEventRecord(other, a));
  EXPECT_CU(cuEventRecord(end, a));
  EXPECT_CU_ERROR(cuEventElapsedTime(&milliseconds, begin, other),
                  INVALID_HANDLE);
  if (std::string(GetParam()) != "eager") {
    EXPECT_CU_ERROR(cuEventElapsedTime(&milliseconds, begin, end), NOT_READY);
  }
  EXPECT_CU(cuEventSynchronize(end));
  EXPECT_EQ(between(begin, end), 0.f);
  EXPECT_EQ(tandemEmulatorDelay(reinterpret_cast<void *>(64), 1),
            CUDA_ERROR_INVALID_HANDLE);
}
