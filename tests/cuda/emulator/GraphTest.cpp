//===- GraphTest.cpp - graphs made node by node ---------------------------===//
#include "EmulatorTest.h"

using namespace tandem::test;

namespace {
class Graphs : public EveryPolicy {
protected:
  void SetUp() override {
    EveryPolicy::SetUp();
    EXPECT_CU(cuGraphCreate(&graph, 0));
  }
  void TearDown() override {
    for (CUgraphExec exec : execs)
      EXPECT_CU(cuGraphExecDestroy(exec));
    if (graph) {
      EXPECT_CU(cuGraphDestroy(graph));
    }
    Emulator::TearDown();
  }

  /// Adds to[i] = from[i] + 1 after other nodes.
  CUgraphNode add(CUdeviceptr to, CUdeviceptr from,
                  std::vector<CUgraphNode> after = {}) {
    Kernel kernel(*this, to, from);
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(),
                                      &kernel.parameters));
    return node;
  }
  CUgraphExec instantiate() {
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    execs.push_back(exec);
    return exec;
  }
  void run(CUgraphExec exec) {
    CUstream on = stream();
    EXPECT_CU(cuGraphLaunch(exec, on));
    EXPECT_CU(cuStreamSynchronize(on));
  }

  struct Kernel {
    Kernel(Graphs &test, CUdeviceptr to, CUdeviceptr from)
        : to(to), from(from) {
      parameters.func = test.increment;
      parameters.gridDimX = kElements / 256;
      parameters.gridDimY = parameters.gridDimZ = 1;
      parameters.blockDimX = 256;
      parameters.blockDimY = parameters.blockDimZ = 1;
      parameters.kernelParams = pointers;
    }
    CUdeviceptr to, from;
    void *pointers[2] = {&to, &from};
    CUDA_KERNEL_NODE_PARAMS parameters = {};
  };
  static CUDA_MEMCPY3D copyOf(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }

  CUgraph graph = nullptr;

private:
  std::vector<CUgraphExec> execs;
};
TANDEM_EVERY_POLICY(Graphs);
} // namespace

TEST_P(Graphs, AllKindsOfNodes) {
  CUdeviceptr x = array(), y = array(), z = array();
  CUDA_MEMSET_NODE_PARAMS fill = {x, 0, 0x40400000, 4, kElements, 1}; // 3.f
  CUgraphNode filled = nullptr, copied = nullptr, joined = nullptr,
              called = nullptr;
  EXPECT_CU(cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, context));
  const CUDA_MEMCPY3D copy = copyOf(y, x);
  EXPECT_CU(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, context));
  CUgraphNode added = add(z, x, {filled});
  const CUgraphNode both[] = {copied, added};
  EXPECT_CU(cuGraphAddEmptyNode(&joined, graph, both, 2));
  CUgraphNode again = add(x, z, {joined});
  int calls = 0;
  CUDA_HOST_NODE_PARAMS call = {[](void *data) { ++*static_cast<int *>(data); },
                                &calls};
  EXPECT_CU(cuGraphAddHostNode(&called, graph, &again, 1, &call));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  EXPECT_CU(cuGraphNodeGetType(copied, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMCPY);
  CUgraphExec exec = instantiate();
  run(exec);
  EXPECT_EQ(get(x), 5.f);
  EXPECT_EQ(get(y), 3.f);
  EXPECT_EQ(calls, 1);
  // What was instantiated does not depend on the graph any more.
  EXPECT_CU(cuGraphDestroy(graph));
  graph = nullptr;
  run(exec);
  EXPECT_EQ(calls, 2);
}

TEST_P(Graphs, MissingEdge) {
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  CUgraphNode first = add(y, x);
  CUgraphNode second = add(z, y);
  CUgraphExec exec = instantiate();
  run(exec);
  expectOneError({"kernel 'test_increment' (operation", "s1"});
  EXPECT_CU(cuGraphAddDependencies(graph, &first, &second, 1));
  run(instantiate());
  EXPECT_EQ(get(z), 3.f);
}

// Two branches that share a beginning are not ordered, though one continues it.
TEST_P(Graphs, BranchesAreNotOrdered) {
  CUdeviceptr x = array(), y = array(), z = array(), w = array();
  set(x, 1);
  CUgraphNode root = add(y, x);
  CUgraphNode left = add(z, y, {root});
  add(w, y, {root});
  add(w, z, {left}); // nothing orders the two writes of w
  run(instantiate());
  expectOneError({"kernel 'test_increment'", "writes"});
}

TEST_P(Graphs, EdgesBackwardsAndRoundInCircles) {
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  CUgraphNode second = add(z, y), first = add(y, x);
  EXPECT_CU(cuGraphAddDependencies(graph, &first, &second, 1));
  EXPECT_CU_ERROR(cuGraphAddDependencies(graph, &first, &second, 1),
                  INVALID_VALUE);
  run(instantiate());
  EXPECT_EQ(get(z), 3.f);
  EXPECT_CU(cuGraphAddDependencies(graph, &second, &first, 1));
  CUgraphExec exec = nullptr;
  EXPECT_CU_ERROR(cuGraphInstantiateWithFlags(&exec, graph, 0), INVALID_VALUE);
}

TEST_P(Graphs, NewParameters) {
  CUdeviceptr x = array(), y = array(), z = array(), w = array();
  set(x, 1);
  set(w, 10);
  CUgraphNode kernel = add(y, x);
  CUDA_MEMCPY3D copy = copyOf(z, y);
  CUgraphNode copied = nullptr, filled = nullptr, called = nullptr;
  EXPECT_CU(cuGraphAddMemcpyNode(&copied, graph, &kernel, 1, &copy, context));
  CUDA_MEMSET_NODE_PARAMS fill = {y, 0, 0, 4, kElements, 1};
  EXPECT_CU(cuGraphAddMemsetNode(&filled, graph, &copied, 1, &fill, context));
  int calls = 0;
  CUDA_HOST_NODE_PARAMS call = {
      [](void *data) { *static_cast<int *>(data) = 1; }, &calls};
  EXPECT_CU(cuGraphAddHostNode(&called, graph, &filled, 1, &call));
  CUgraphExec exec = instantiate();
  run(exec);
  EXPECT_EQ(get(z), 2.f);
  EXPECT_EQ(get(y), 0.f);
  // From here on with other addresses.
  Kernel other(*this, y, w);
  EXPECT_CU(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &other.parameters));
  copy = copyOf(x, y);
  EXPECT_CU(cuGraphExecMemcpyNodeSetParams(exec, copied, &copy, context));
  fill.value = 0x3f800000;
  EXPECT_CU(cuGraphExecMemsetNodeSetParams(exec, filled, &fill, context));
  call.fn = [](void *data) { *static_cast<int *>(data) = 2; };
  EXPECT_CU(cuGraphExecHostNodeSetParams(exec, called, &call));
  run(exec);
  EXPECT_EQ(get(x), 11.f);
  EXPECT_EQ(get(y), 1.f);
  EXPECT_EQ(get(z), 2.f);
  EXPECT_EQ(calls, 2);
  // Another kind of node, or a node of no graph.
  EXPECT_CU_ERROR(
      cuGraphExecKernelNodeSetParams_v2(exec, copied, &other.parameters),
      INVALID_VALUE);
  EXPECT_CU_ERROR(
      cuGraphExecKernelNodeSetParams_v2(
          exec, reinterpret_cast<CUgraphNode>(this), &other.parameters),
      INVALID_VALUE);
}

TEST_P(Graphs, Update) {
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  CUgraphNode first = add(y, x);
  add(z, y, {first});
  CUgraphExec exec = instantiate();
  CUgraph old = graph;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  CUgraphNode mine = add(z, x);
  add(y, z, {mine});
  CUgraphExecUpdateResultInfo info;
  EXPECT_CU(cuGraphExecUpdate_v2(exec, graph, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  run(exec);
  EXPECT_EQ(get(z), 2.f);
  EXPECT_EQ(get(y), 3.f);
  CUgraphNode more = add(x, y);
  EXPECT_CU_ERROR(cuGraphExecUpdate_v2(exec, graph, &info),
                  GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_NE(more, nullptr);
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuGraphCreate(&graph, 0));
  mine = add(z, x);
  CUgraphNode empty = nullptr;
  EXPECT_CU(cuGraphAddEmptyNode(&empty, graph, &mine, 1));
  EXPECT_CU_ERROR(cuGraphExecUpdate_v2(exec, graph, &info),
                  GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(info.errorNode, empty);
  EXPECT_CU(cuGraphDestroy(old));
}

TEST_P(Graphs, Children) {
  CUdeviceptr x = array(), y = array(), z = array();
  set(x, 1);
  CUgraph inner = graph;
  add(y, x);
  add(z, x); // two ends
  EXPECT_CU(cuGraphCreate(&graph, 0));
  CUgraphNode child = nullptr, empty = nullptr;
  CUgraph none = nullptr;
  EXPECT_CU(cuGraphCreate(&none, 0));
  EXPECT_CU(cuGraphAddChildGraphNode(&child, graph, nullptr, 0, inner));
  EXPECT_CU(cuGraphAddChildGraphNode(&empty, graph, &child, 1, none));
  EXPECT_CU(cuGraphDestroy(inner));
  EXPECT_CU(cuGraphDestroy(none));
  // Comes after all that the child does, through the empty one.
  add(x, z, {empty});
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  EXPECT_CU(cuGraphNodeGetType(child, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_GRAPH);
  run(instantiate());
  EXPECT_EQ(get(x), 3.f);
  EXPECT_EQ(get(y), 2.f);
}

TEST_P(Graphs, WrongHandles) {
  CUgraphNode node = nullptr;
  CUgraph other = nullptr;
  EXPECT_CU(cuGraphCreate(&other, 0));
  EXPECT_CU(cuGraphAddEmptyNode(&node, other, nullptr, 0));
  CUgraphNode mine = nullptr;
  EXPECT_CU_ERROR(cuGraphAddEmptyNode(&mine, graph, &node, 1), INVALID_VALUE);
  EXPECT_CU_ERROR(
      cuGraphAddEmptyNode(&mine, reinterpret_cast<CUgraph>(this), nullptr, 0),
      INVALID_VALUE);
  EXPECT_CU_ERROR(cuGraphLaunch(reinterpret_cast<CUgraphExec>(this), stream()),
                  INVALID_VALUE);
  EXPECT_CU(cuGraphDestroy(other));
  EXPECT_CU_ERROR(cuGraphDestroy(other), INVALID_VALUE);
  EXPECT_CU_ERROR(cuGraphNodeGetType(node, nullptr), INVALID_VALUE);
}

// A thousand launches keep neither memory nor time for what is done.
TEST_P(Graphs, ManyLaunches) {
  CUdeviceptr x = array(), y = array();
  set(x, 0);
  CUgraphNode last = add(y, x);
  last = add(x, y, {last});
  CUgraphExec exec = instantiate();
  CUstream on = stream();
  for (int i = 0; i < 1000; ++i)
    EXPECT_CU(cuGraphLaunch(exec, on));
  EXPECT_CU(cuStreamSynchronize(on));
  EXPECT_EQ(get(x), 2000.f);
}
