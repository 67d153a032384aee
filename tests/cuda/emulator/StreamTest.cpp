//===- StreamTest.cpp - queues, their order, and the default stream -------===//
#include "EmulatorTest.h"

#include <set>
#include <thread>

using namespace tandem::test;

namespace {
class Streams : public Emulator {
protected:
  /// Queues a call that adds `letter` to `ran`.
  void mark(char letter, CUstream stream) {
    marks.push_back(std::make_unique<Mark>(Mark{this, letter}));
    EXPECT_CU(cuLaunchHostFunc(
        stream,
        [](void *data) {
          const auto *mark = static_cast<Mark *>(data);
          mark->test->ran += mark->letter;
        },
        marks.back().get()));
  }
  std::string ran;

private:
  struct Mark {
    Streams *test;
    char letter;
  };
  std::vector<std::unique_ptr<Mark>> marks;
};

class StreamsAlways : public EveryPolicy {};
TANDEM_EVERY_POLICY(StreamsAlways);
} // namespace

TEST_F(Streams, EagerRunsAtOnce) {
  mark('a', stream());
  mark('b', stream());
  EXPECT_EQ(ran, "ab");
}

TEST_F(Streams, LazyRunsWhatIsNeeded) {
  ASSERT_EQ(tandemEmulatorSetPolicy("lazy"), 0);
  CUstream a = stream(), b = stream(), c = stream();
  mark('a', a);
  mark('b', b);
  order(a, c);
  mark('c', c);
  mark('d', a);
  EXPECT_EQ(ran, "");
  EXPECT_CU(cuStreamSynchronize(c));
  EXPECT_EQ(ran, "ac");
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(ran, "acdb");
}

TEST_F(Streams, OthersFirst) {
  ASSERT_EQ(tandemEmulatorSetPolicy("others-first"), 0);
  CUstream a = stream(), b = stream();
  mark('x', b);
  mark('y', b);
  mark('1', a);
  mark('2', a);
  order(a, b);
  mark('z', b);
  EXPECT_CU(cuStreamSynchronize(a));
  // What waits for the stream that is needed cannot come before it.
  EXPECT_EQ(ran, "xy12");
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(ran, "xy12z");
}

TEST_F(Streams, RandomIsTheSameForTheSameSeed) {
  std::set<std::string> orders;
  for (int seed = 0; seed < 8; ++seed) {
    std::string first;
    for (int again = 0; again < 2; ++again) {
      ran.clear();
      const std::string policy = "random:" + std::to_string(seed);
      ASSERT_EQ(tandemEmulatorSetPolicy(policy.c_str()), 0);
      CUstream a = stream(), b = stream(), c = stream();
      for (char i = '0'; i < '4'; ++i) {
        mark(i, a);
        mark(static_cast<char>(i + 10), b);
        mark(static_cast<char>(i + 20), c);
      }
      EXPECT_CU(cuCtxSynchronize());
      EXPECT_EQ(ran.size(), 12u);
      if (again) {
        EXPECT_EQ(ran, first);
      }
      first = ran;
      // Each stream in its own order, whatever the others do.
      for (char from : {'0', '\x3a', '\x44'}) {
        std::string own;
        for (char c : ran)
          if (c >= from && c < from + 4)
            own += c;
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
      }
    }
    orders.insert(first);
  }
  EXPECT_GT(orders.size(), 3u);
}

TEST_F(Streams, PolicyTexts) {
  for (const char *text :
       {"", "lazier", "random", "random:", "random:x", "random:1x", "eager "})
    EXPECT_EQ(tandemEmulatorSetPolicy(text), 1) << text;
  EXPECT_EQ(tandemEmulatorSetPolicy(nullptr), 1);
}

TEST_F(Streams, Environment) {
  setenv("TANDEM_EMULATOR_POLICY", "lazy", 1);
  setenv("TANDEM_EMULATOR_FAIL", "alloc:1", 1);
  setenv("TANDEM_EMULATOR_MEMORY", "100000", 1);
  tandemEmulatorReset();
  mark('a', stream());
  EXPECT_EQ(ran, "");
  CUdeviceptr x = 0;
  EXPECT_CU_ERROR(cuMemAlloc_v2(&x, 64), OUT_OF_MEMORY);
  size_t free = 0, total = 0;
  EXPECT_CU(cuMemGetInfo_v2(&free, &total));
  EXPECT_EQ(total, 100000u);
  setenv("TANDEM_EMULATOR_POLICY", "lazier", 1);
  setenv("TANDEM_EMULATOR_FAIL", "alloc", 1);
  setenv("TANDEM_EMULATOR_MEMORY", "much", 1);
  testing::internal::CaptureStderr();
  tandemEmulatorReset();
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char *variable : {"POLICY but got 'lazier'",
                               "FAIL but got 'alloc'", "MEMORY but got 'much'"})
    EXPECT_NE(said.find(variable), std::string::npos) << said;
  mark('b', stream());
  EXPECT_EQ(ran, "ab");
  for (const char *variable : {"POLICY", "FAIL", "MEMORY"})
    unsetenv((std::string("TANDEM_EMULATOR_") + variable).c_str());
}

TEST_F(Streams, NoCallsFromHostFunctions) {
  CUresult result = CUDA_SUCCESS;
  EXPECT_CU(cuLaunchHostFunc(
      stream(),
      [](void *data) { *static_cast<CUresult *>(data) = cuCtxSynchronize(); },
      &result));
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(Streams, Handles) {
  EXPECT_CU_ERROR(cuStreamSynchronize(reinterpret_cast<CUstream>(64)),
                  INVALID_HANDLE);
  EXPECT_CU_ERROR(cuStreamSynchronize(CU_STREAM_PER_THREAD), INVALID_HANDLE);
  EXPECT_CU_ERROR(cuStreamDestroy_v2(nullptr), INVALID_HANDLE);
  EXPECT_CU_ERROR(cuEventRecord(reinterpret_cast<CUevent>(64), nullptr),
                  INVALID_HANDLE);
  CUstream gone = nullptr;
  EXPECT_CU(cuStreamCreate(&gone, 0));
  EXPECT_CU(cuStreamDestroy_v2(gone));
  EXPECT_CU_ERROR(cuStreamQuery(gone), INVALID_HANDLE);
  EXPECT_CU_ERROR(cuStreamCreate(nullptr, 0), INVALID_VALUE);
  EXPECT_CU_ERROR(cuStreamCreate(&gone, 7), INVALID_VALUE);
  unsigned flags = 9;
  EXPECT_CU(cuStreamGetFlags(stream(), &flags));
  EXPECT_EQ(flags, CU_STREAM_NON_BLOCKING);
  CUcontext of = nullptr;
  EXPECT_CU(cuStreamGetCtx(CU_STREAM_LEGACY, &of));
  EXPECT_EQ(of, context);
  // A number never comes again, whatever the handle.
  std::set<unsigned long long> numbers;
  for (int i = 0; i < 5; ++i) {
    unsigned long long number = 0;
    EXPECT_CU(cuStreamCreate(&gone, 0));
    EXPECT_CU(cuStreamGetId(gone, &number));
    EXPECT_TRUE(numbers.insert(number).second);
    EXPECT_CU(cuStreamDestroy_v2(gone));
    EXPECT_CU_ERROR(cuStreamGetId(gone, &number), INVALID_HANDLE);
  }
  unsigned long long first = 0, second = 0;
  EXPECT_CU(cuStreamGetId(nullptr, &first));
  EXPECT_CU(cuStreamGetId(CU_STREAM_LEGACY, &second));
  EXPECT_EQ(first, second);
  EXPECT_CU_ERROR(cuStreamGetId(nullptr, nullptr), INVALID_VALUE);
}

// The default stream and blocking ones wait for each other.
TEST_P(StreamsAlways, DefaultStreamOrdersBlockingOnes) {
  CUstream a = stream(CU_STREAM_DEFAULT), b = stream(CU_STREAM_DEFAULT);
  CUdeviceptr x = array(), y = array(), z = array(), w = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, y, nullptr));
  EXPECT_CU(launch(w, z, b));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(get(w), 4.f);
}

TEST_P(StreamsAlways, DefaultStreamDoesNotOrderOthers) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array(), w = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, y, nullptr));
  expectOneError({"s1", "default"});
  EXPECT_CU(launch(w, z, b));
  expectOneError({"s2", "default"});
}

// Two blocking streams are not ordered with each other.
TEST_P(StreamsAlways, BlockingStreamsDoNotWaitForEachOther) {
  CUstream a = stream(CU_STREAM_DEFAULT), b = stream(CU_STREAM_DEFAULT);
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, y, b));
  EXPECT_EQ(takeErrors().size(), 1u);
}

TEST_P(StreamsAlways, DestroyedStreamsFinish) {
  CUstream a = nullptr, b = nullptr;
  EXPECT_CU(cuStreamCreate(&a, CU_STREAM_DEFAULT));
  EXPECT_CU(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuStreamDestroy_v2(a));
  EXPECT_CU(launch(z, y, nullptr)); // still ordered after it
  EXPECT_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(get(z), 3.f);
  EXPECT_CU(launch(y, z, b));
  EXPECT_CU(cuStreamDestroy_v2(b));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(get(y), 4.f);
}

TEST_P(StreamsAlways, SynchronizingTheDefaultStreamWaitsForBlockingOnes) {
  CUstream a = stream(CU_STREAM_DEFAULT);
  CUdeviceptr x = array();
  float *out = pinned();
  set(x, 7);
  EXPECT_CU(cuMemcpyDtoHAsync_v2(out, x, kBytes, a));
  EXPECT_CU(cuStreamSynchronize(nullptr));
  tandemEmulatorHostAccess(out, kBytes, 0);
  EXPECT_EQ(out[5], 7.f);
}

// A wait is for the record before it; a later one changes nothing.
TEST_P(StreamsAlways, WaitsAreForTheRecordBefore) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  CUevent e = event();
  EXPECT_CU(cuStreamWaitEvent(b, e, 0)); // never recorded: no wait
  EXPECT_CU(cuEventSynchronize(e));
  EXPECT_CU(cuEventQuery(e));
  set(x, 1);
  EXPECT_CU(cuEventRecord(e, a));
  EXPECT_CU(cuStreamWaitEvent(b, e, 0));
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuEventRecord(e, a));
  EXPECT_CU(launch(z, y, b));
  EXPECT_EQ(takeErrors().size(), 1u);
  EXPECT_CU(cuEventSynchronize(e));
  EXPECT_EQ(get(y), 2.f);
}

TEST_P(StreamsAlways, QueriesSucceedInTheEnd) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  CUevent e = event();
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuEventRecord(e, a));
  const bool isEager = std::string(GetParam()) == "eager";
  CUresult first = cuEventQuery(e);
  EXPECT_EQ(first, isEager ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
  while (first == CUDA_ERROR_NOT_READY)
    first = cuEventQuery(e);
  EXPECT_CU(cuStreamQuery(a));
  EXPECT_EQ(get(y), 2.f); // the query told the host
  EXPECT_GE(tandemEmulatorGetCounts().queries, 2u);
}

TEST_P(StreamsAlways, WhatOneThreadWaitedForAllKnow) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  EXPECT_CU(launch(y, x, a));
  std::thread([&] {
    EXPECT_CU_ERROR(cuStreamSynchronize(nullptr), INVALID_CONTEXT);
    EXPECT_CU(cuCtxSetCurrent(context));
    EXPECT_CU(cuStreamSynchronize(a));
  }).join();
  EXPECT_EQ(get(y), 2.f);
}

TEST_P(StreamsAlways, LogAndCounts) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array();
  float *in = pinned();
  std::fill(in, in + kElements, 1.f);
  CUevent e = event();
  tandemEmulatorSetLogging(1);
  EXPECT_CU(cuMemcpyHtoDAsync_v2(x, in, kBytes, a));
  EXPECT_CU(cuEventRecord(e, a));
  EXPECT_CU(cuStreamWaitEvent(b, e, 0));
  EXPECT_CU(launch(y, x, b));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_CU(cuMemsetD32Async(x, 0, 4, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(takeLog(), (std::vector<std::string>{
                           "s1: copy to device, 4096 bytes", "s1: record e1",
                           "s2: wait e1 of s1", "s2: kernel 'test_increment'",
                           "host: synchronize s2", "default: memset, 16 bytes",
                           "host: synchronize device"}));
  EXPECT_STREQ(tandemEmulatorStreamName(b), "s2");
  EXPECT_STREQ(tandemEmulatorStreamName(nullptr), "default");
  const TandemEmulatorCounts counts = tandemEmulatorGetCounts();
  EXPECT_EQ(counts.allocations, 2u);
  EXPECT_EQ(counts.hostAllocations, 1u);
  EXPECT_EQ(counts.launches, 1u);
  EXPECT_EQ(counts.copies, 1u);
  EXPECT_EQ(counts.memsets, 1u);
  EXPECT_EQ(counts.syncs, 2u);
  EXPECT_EQ(counts.eventRecords, 1u);
  EXPECT_EQ(counts.eventWaits, 1u);
  EXPECT_EQ(counts.defaultStreamOperations, 1u);
}
