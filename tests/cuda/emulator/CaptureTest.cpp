//===- CaptureTest.cpp - recording what streams are given -----------------===//
#include "EmulatorTest.h"

#include <thread>

using namespace tandem::test;

namespace {
class Capturing : public Emulator {
protected:
  void begin(CUstream on,
             CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    EXPECT_CU(cuStreamBeginCapture_v2(on, mode));
  }
  /// Ends a capture, and returns its graph, destroyed at the end.
  CUgraph end(CUstream on) {
    CUgraph graph = nullptr;
    EXPECT_CU(cuStreamEndCapture(on, &graph));
    if (graph)
      graphs.push_back(graph);
    return graph;
  }
  /// Ends a capture that has gone wrong.
  std::string endBadly(CUstream on) {
    CUgraph graph = reinterpret_cast<CUgraph>(this);
    const std::string result = nameOf(cuStreamEndCapture(on, &graph));
    EXPECT_EQ(graph, nullptr);
    // The stream is as before.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    EXPECT_CU(cuStreamIsCapturing(on, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    return result;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    execs.push_back(exec);
    return exec;
  }
  size_t nodes(CUgraph graph) {
    size_t count = 0;
    EXPECT_CU(cuGraphGetNodes(graph, nullptr, &count));
    return count;
  }
  void TearDown() override {
    for (CUgraphExec exec : execs)
      EXPECT_CU(cuGraphExecDestroy(exec));
    for (CUgraph graph : graphs)
      EXPECT_CU(cuGraphDestroy(graph));
    Emulator::TearDown();
  }

private:
  std::vector<CUgraph> graphs;
  std::vector<CUgraphExec> execs;
};

class CapturingAlways : public Capturing,
                        public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    Capturing::SetUp();
    ASSERT_EQ(tandemEmulatorSetPolicy(GetParam()), 0);
  }
};
TANDEM_EVERY_POLICY(CapturingAlways);
} // namespace

TEST_P(CapturingAlways, ForkJoinAndReplays) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  begin(a);
  EXPECT_CU(launch(y, x, a));
  order(a, b);
  EXPECT_CU(launch(z, y, b)); // y + 1
  EXPECT_CU(launch(x, y, a)); // both branches read y
  order(b, a);
  EXPECT_CU(launch(y, z, a));
  CUgraph graph = end(a);
  EXPECT_EQ(nodes(graph), 4u);
  CUgraphExec exec = instantiate(graph);
  for (float value : {1.f, 10.f, 100.f}) {
    set(x, value);
    EXPECT_CU(cuGraphLaunch(exec, a));
    EXPECT_CU(cuStreamSynchronize(a));
    EXPECT_EQ(get(y), value + 3);
    EXPECT_EQ(get(x), value + 2);
  }
  EXPECT_EQ(tandemEmulatorGetCounts().graphLaunches, 3u);
  EXPECT_EQ(tandemEmulatorGetCounts().launches, 12u);
}

// Nothing of a capture runs before its graph is launched.
TEST_F(Capturing, NothingRuns) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  set(x, 1);
  set(y, 5);
  begin(a);
  EXPECT_CU(launch(y, x, a));
  end(a);
  EXPECT_EQ(get(y), 5.f);
  EXPECT_EQ(tandemEmulatorGetCounts().launches, 0u);
}

// In a graph only edges order: not the order of the calls.
TEST_P(CapturingAlways, MissingWaitInACapture) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  set(y, 1);
  begin(a);
  order(a, b);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(z, y, b)); // does not wait for it
  order(b, a);
  CUgraphExec exec = instantiate(end(a));
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
  EXPECT_CU(cuGraphLaunch(exec, a));
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_EQ(takeErrors().size(), 1u);
}

// A launch is ordered with what its stream does before and after it, and with
// the launch of the same graph before it, on another stream.
TEST_P(CapturingAlways, LaunchesAndStreams) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array();
  float *in = pinned();
  std::fill(in, in + kElements, 1.f);
  begin(a);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(x, y, a));
  CUgraphExec exec = instantiate(end(a));
  EXPECT_CU(cuMemcpyHtoDAsync_v2(x, in, kBytes, a));
  EXPECT_CU(cuGraphLaunch(exec, a));
  EXPECT_CU(cuGraphLaunch(exec, b));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(get(x), 5.f);
  EXPECT_CU(cuGraphLaunch(exec, a));
  EXPECT_CU(cuMemsetD8Async(x, 0, kBytes, b)); // does not wait
  EXPECT_GE(takeErrors().size(), 1u);
}

TEST_F(Capturing, Unjoined) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array(), y = array();
  begin(a);
  EXPECT_CU(launch(y, x, a));
  order(a, b);
  EXPECT_CU(launch(x, y, b));
  EXPECT_EQ(endBadly(a), "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  EXPECT_CU(cuStreamIsCapturing(b, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

// What a capture forbids, in the capturing thread: an error, and the capture
// ends as invalid.
TEST_F(Capturing, Forbidden) {
  CUstream a = stream(), other = stream();
  CUdeviceptr x = array(), y = array(), made = 0;
  void *host = nullptr;
  CUmodule module = nullptr;
  CUevent e = event(), outside = event();
  std::vector<float> pageable(kElements);
  EXPECT_CU(cuEventRecord(outside, other));
  const std::string unsupported = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
  struct Case {
    const char *what;
    std::function<CUresult()> call;
    std::string result;
  };
  const Case cases[] = {
      {"synchronize the stream", [&] { return cuStreamSynchronize(a); },
       unsupported},
      {"query it", [&] { return cuStreamQuery(a); }, unsupported},
      {"synchronize another one", [&] { return cuStreamSynchronize(other); },
       unsupported},
      {"synchronize the device", [&] { return cuCtxSynchronize(); },
       unsupported},
      {"synchronize an event", [&] { return cuEventSynchronize(outside); },
       unsupported},
      {"query an event", [&] { return cuEventQuery(outside); }, unsupported},
      {"synchronize a captured event",
       [&] {
         EXPECT_CU(cuEventRecord(e, a));
         return cuEventSynchronize(e);
       },
       "CUDA_ERROR_CAPTURED_EVENT"},
      {"allocate", [&] { return cuMemAlloc_v2(&made, 64); }, unsupported},
      {"allocate on it", [&] { return cuMemAllocAsync(&made, 64, a); },
       unsupported},
      {"allocate pinned memory", [&] { return cuMemHostAlloc(&host, 64, 0); },
       unsupported},
      {"free", [&] { return cuMemFree_v2(x); }, unsupported},
      {"copy now", [&] { return cuMemcpyHtoD_v2(x, pageable.data(), 64); },
       unsupported},
      {"copy pageable memory",
       [&] { return cuMemcpyHtoDAsync_v2(x, pageable.data(), 64, a); },
       unsupported},
      {"load a module", [&] { return cuModuleLoadData(&module, ""); },
       unsupported},
      {"wait for work outside",
       [&] { return cuStreamWaitEvent(a, outside, 0); },
       "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {"end it on another stream",
       [&] {
         order(a, other);
         CUgraph graph = nullptr;
         return cuStreamEndCapture(other, &graph);
       },
       "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
  };
  for (const Case &forbidden : cases) {
    SCOPED_TRACE(forbidden.what);
    begin(a);
    EXPECT_CU(launch(y, x, a));
    EXPECT_EQ(nameOf(forbidden.call()), forbidden.result);
    EXPECT_CU_ERROR(launch(y, x, a), STREAM_CAPTURE_INVALIDATED);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_CU(cuStreamIsCapturing(a, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(endBadly(a), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    EXPECT_CU(launch(y, x, a)); // and the next step is right
    EXPECT_CU(cuStreamSynchronize(a));
  }
}

// Work on the default stream would wait for blocking streams that capture.
TEST_F(Capturing, DefaultStream) {
  CUstream blocking = stream(CU_STREAM_DEFAULT), a = stream();
  CUdeviceptr x = array();
  EXPECT_CU_ERROR(
      cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
      STREAM_CAPTURE_UNSUPPORTED);
  begin(a);
  EXPECT_CU(cuMemsetD8Async(x, 0, 4, nullptr)); // a does not block
  end(a);
  begin(blocking); // to ask for it is an error that harms nothing
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_CU_ERROR(cuStreamIsCapturing(nullptr, &status),
                  STREAM_CAPTURE_IMPLICIT);
  EXPECT_CU_ERROR(cuStreamGetCaptureInfo_v2(nullptr, &status, nullptr, nullptr,
                                            nullptr, nullptr),
                  STREAM_CAPTURE_IMPLICIT);
  end(blocking);
  begin(blocking);
  EXPECT_CU_ERROR(cuMemsetD8Async(x, 0, 4, nullptr), STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(endBadly(blocking), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
}

TEST_F(Capturing, Modes) {
  CUstream a = stream();
  CUdeviceptr x = 0;
  auto allocateElsewhere = [&] {
    std::string result;
    std::thread([&] {
      EXPECT_CU(cuCtxSetCurrent(context));
      CUdeviceptr made = 0;
      const CUresult code = cuMemAlloc_v2(&made, 64);
      result = nameOf(code);
      if (!code) {
        EXPECT_CU(cuMemFree_v2(made));
      }
    }).join();
    return result;
  };
  // Other threads: a global capture forbids it, one of a thread does not.
  begin(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(allocateElsewhere(), "CUDA_SUCCESS");
  end(a);
  begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(allocateElsewhere(), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
  EXPECT_EQ(endBadly(a), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
  // A relaxed capture, or thread, forbids nothing that is not wrong.
  begin(a, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_CU(cuMemAlloc_v2(&x, 64));
  EXPECT_CU(cuMemFree_v2(x));
  end(a);
  begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_CU(cuMemAlloc_v2(&x, 64));
  EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  end(a);
  EXPECT_CU(cuMemFree_v2(x));
  // Only the thread that began it ends it.
  begin(a);
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context));
    CUgraph graph = nullptr;
    EXPECT_CU_ERROR(cuStreamEndCapture(a, &graph), STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  end(a);
}

TEST_F(Capturing, TwoCaptures) {
  CUstream a = stream(), b = stream();
  begin(a);
  EXPECT_CU_ERROR(
      cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      ILLEGAL_STATE);
  begin(b);
  CUevent e = event();
  EXPECT_CU(cuEventRecord(e, a));
  EXPECT_CU_ERROR(cuStreamWaitEvent(b, e, 0), STREAM_CAPTURE_MERGE);
  EXPECT_EQ(endBadly(a), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
  EXPECT_EQ(endBadly(b), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
  EXPECT_CU_ERROR(cuStreamWaitEvent(b, e, 0), CAPTURED_EVENT);
  EXPECT_EQ(nameOf([&] {
              CUgraph graph = nullptr;
              return cuStreamEndCapture(a, &graph);
            }()),
            "CUDA_ERROR_ILLEGAL_STATE");
}

TEST_F(Capturing, AddedByHand) {
  CUstream a = stream();
  CUdeviceptr x = array();
  begin(a);
  EXPECT_CU(cuMemsetD32Async(x, 1, kElements, a));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode *tail = nullptr;
  size_t count = 0;
  EXPECT_CU(cuStreamGetCaptureInfo_v2(a, &status, &id, &graph, &tail, &count));
  ASSERT_EQ(count, 1u);
  EXPECT_NE(id, 0u);
  CUDA_MEMSET_NODE_PARAMS fill = {x, 0, 2, 4, kElements / 2, 1};
  CUgraphNode node = nullptr;
  EXPECT_CU(cuGraphAddMemsetNode(&node, graph, tail, count, &fill, context));
  EXPECT_CU(cuStreamUpdateCaptureDependencies(
      a, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  EXPECT_CU(cuMemsetD32Async(x, 3, kElements / 4, a));
  CUgraph made = end(a);
  EXPECT_EQ(made, graph);
  EXPECT_EQ(nodes(made), 3u);
  EXPECT_CU(cuGraphLaunch(instantiate(made), a));
  EXPECT_CU(cuStreamSynchronize(a));
  std::vector<uint32_t> values(kElements);
  EXPECT_CU(cuMemcpyDtoH_v2(values.data(), x, kBytes));
  EXPECT_EQ(values.front(), 3u);
  EXPECT_EQ(values[kElements / 2 - 1], 2u);
  EXPECT_EQ(values.back(), 1u);
}

TEST_F(Capturing, LaunchInACapture) {
  CUstream a = stream();
  CUdeviceptr x = array(), y = array();
  begin(a);
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(launch(x, y, a));
  CUgraphExec inner = instantiate(end(a));
  begin(a);
  EXPECT_CU(cuGraphLaunch(inner, a));
  EXPECT_CU(launch(y, x, a));
  EXPECT_CU(cuGraphLaunch(inner, a));
  CUgraphExec outer = instantiate(end(a));
  set(x, 0);
  EXPECT_CU(cuGraphLaunch(outer, a));
  EXPECT_CU(cuStreamSynchronize(a));
  EXPECT_EQ(get(x), 4.f);
}

TEST_F(Capturing, Log) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = array();
  CUevent e = event();
  tandemEmulatorSetLogging(1);
  begin(a);
  EXPECT_CU(cuMemsetD8Async(x, 0, 4, a));
  EXPECT_CU(cuEventRecord(e, a));
  EXPECT_CU(cuStreamWaitEvent(b, e, 0));
  CUgraphExec exec = instantiate(end(a));
  EXPECT_CU(cuGraphLaunch(exec, b));
  EXPECT_EQ(takeLog(),
            (std::vector<std::string>{
                "s1: begin capture", "s1: memset, 4 bytes (captured)",
                "s1: record e1 (captured)", "s2: wait e1 of s1 (captured)",
                "s1: end capture, 1 nodes", "host: instantiate graph, 1 nodes",
                "s2: graph launch, 1 nodes"}));
}
