//===- PlanGraph.cpp - a program as a graph -------------------------------===//
//
// The commands become nodes, one by one, with the edges of the list; what is
// not ordered by it may run at once. A library's call is recorded on a stream
// of its own and becomes a child graph. The graph is instantiated once. Where
// addresses have changed since, the nodes that have them get new parameters: a
// launch that is still running keeps those that it was launched with.
//
//===----------------------------------------------------------------------===//
#include "cuda/Plan.h"

#include <algorithm>

namespace tandem::cuda {

using namespace driver;

CUDA_KERNEL_NODE_PARAMS Plan::kernelNode(const Bound &one) {
  CUDA_KERNEL_NODE_PARAMS node = {};
  node.func = one.kernel->function;
  node.gridDimX = one.grid[0];
  node.gridDimY = one.grid[1];
  node.gridDimZ = one.grid[2];
  node.blockDimX = one.kernel->block[0];
  node.blockDimY = one.kernel->block[1];
  node.blockDimZ = one.kernel->block[2];
  node.sharedMemBytes = one.kernel->sharedBytes;
  node.kernelParams = parameters.data() + one.first;
  return node;
}

CUDA_MEMCPY3D Plan::copyNode(const Bound &one) const {
  CUDA_MEMCPY3D node = {};
  node.srcMemoryType = node.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  node.dstDevice = at(one.first);
  node.srcDevice = at(one.first + 1);
  if (one.isToHost) {
    node.dstMemoryType = CU_MEMORYTYPE_HOST;
    node.dstHost = values[one.first];
  }
  if (one.isFromHost) {
    node.srcMemoryType = CU_MEMORYTYPE_HOST;
    node.srcHost = values[one.first + 1];
  }
  node.WidthInBytes = static_cast<size_t>(one.bytes);
  node.Height = node.Depth = 1;
  return node;
}

CUDA_MEMSET_NODE_PARAMS Plan::zeroNode(const Bound &one) const {
  CUDA_MEMSET_NODE_PARAMS node = {};
  node.dst = at(one.first);
  // Words where they fit: they are faster.
  node.elementSize = (at(one.first) | one.bytes) % 4 == 0 ? 4 : 1;
  node.width = static_cast<size_t>(one.bytes) / node.elementSize;
  node.height = 1;
  return node;
}

/// A library's call as a graph: a node cannot be made of it by hand.
Result<CUgraph> Plan::recordCall(const Bound &one) {
  const Functions &call = context.call();
  std::lock_guard<std::mutex> lock(context.recording());
  if (Status status = context.check(
          call.streamBeginCapture(recorder, CU_STREAM_CAPTURE_MODE_RELAXED),
          "cuStreamBeginCapture");
      !status)
    return status;
  Status queued = queueCall(one, recorder);
  CUgraph recorded = nullptr;
  Status ended = context.check(call.streamEndCapture(recorder, &recorded),
                               "cuStreamEndCapture");
  if (queued.ok() && ended.ok())
    return recorded;
  if (recorded)
    call.graphDestroy(recorded);
  return queued.ok() ? ended : queued;
}

Status Plan::makeNode(size_t c, std::span<const CUgraphNode> after) {
  const Functions &call = context.call();
  const Bound &one = bound[c];
  if (one.kernel) {
    CUDA_KERNEL_NODE_PARAMS node = kernelNode(one);
    return context.check(call.graphAddKernelNode(&nodes[c], graph, after.data(),
                                                 after.size(), &node),
                         "cuGraphAddKernelNode");
  }
  if (one.call) {
    Result<CUgraph> child = recordCall(one);
    if (!child)
      return std::move(child).status();
    Status status =
        context.check(call.graphAddChildGraphNode(
                          &nodes[c], graph, after.data(), after.size(), *child),
                      "cuGraphAddChildGraphNode");
    call.graphDestroy(*child);
    return status;
  }
  if (one.count == 2) {
    CUDA_MEMCPY3D node = copyNode(one);
    return context.check(call.graphAddMemcpyNode(&nodes[c], graph, after.data(),
                                                 after.size(), &node,
                                                 context.handle()),
                         "cuGraphAddMemcpyNode");
  }
  CUDA_MEMSET_NODE_PARAMS node = zeroNode(one);
  return context.check(call.graphAddMemsetNode(&nodes[c], graph, after.data(),
                                               after.size(), &node,
                                               context.handle()),
                       "cuGraphAddMemsetNode");
}

Status Plan::makeGraph() {
  const Functions &call = context.call();
  Status status = context.check(call.graphCreate(&graph, 0), "cuGraphCreate");
  const std::vector<Command> &commands = list.commands();
  nodes.assign(commands.size(), nullptr);
  std::vector<CUgraphNode> after;
  for (size_t c = 0; status.ok() && c < commands.size(); ++c) {
    after.clear();
    for (int other : commands[c].after)
      after.push_back(nodes[other]);
    status = makeNode(c, after);
    if (!status)
      status = failed(std::move(status), c);
  }
  if (status.ok())
    status = context.check(call.graphInstantiate(&exec, graph, 0),
                           "cuGraphInstantiate");
  if (status.ok())
    graphValues = values;
  else
    dropGraph();
  return status;
}

/// Brings what a launch needs of the graph to the device, on a stream beside
/// that of the launch, which may have work to do yet; the launch waits for it.
/// A launch does so itself where that is refused.
Status Plan::uploadGraph(CUstream stream, CUstream beside, EventPool &events) {
  const Functions &call = context.call();
  Context::Relaxed relaxed(context);
  CUresult result = call.graphUpload(exec, beside);
  if (result)
    return context.isLost() || isFatal(result)
               ? context.check(result, "cuGraphUpload")
               : Status::success();
  return events.wait(stream, beside);
}

Status Plan::updateNode(size_t c) {
  const Functions &call = context.call();
  const Bound &one = bound[c];
  if (one.kernel) {
    CUDA_KERNEL_NODE_PARAMS node = kernelNode(one);
    return context.check(
        call.graphExecKernelNodeSetParams(exec, nodes[c], &node),
        "cuGraphExecKernelNodeSetParams");
  }
  if (one.call) {
    Result<CUgraph> child = recordCall(one);
    if (!child)
      return std::move(child).status();
    Status status = context.check(
        call.graphExecChildGraphNodeSetParams(exec, nodes[c], *child),
        "cuGraphExecChildGraphNodeSetParams");
    call.graphDestroy(*child);
    return status;
  }
  if (one.count == 2) {
    CUDA_MEMCPY3D node = copyNode(one);
    return context.check(call.graphExecMemcpyNodeSetParams(
                             exec, nodes[c], &node, context.handle()),
                         "cuGraphExecMemcpyNodeSetParams");
  }
  CUDA_MEMSET_NODE_PARAMS node = zeroNode(one);
  return context.check(call.graphExecMemsetNodeSetParams(exec, nodes[c], &node,
                                                         context.handle()),
                       "cuGraphExecMemsetNodeSetParams");
}

Status Plan::updateGraph() {
  for (size_t c = 0; c < bound.size(); ++c) {
    const Bound &one = bound[c];
    auto begin = values.begin() + static_cast<ptrdiff_t>(one.first);
    auto old = graphValues.begin() + static_cast<ptrdiff_t>(one.first);
    auto count = static_cast<ptrdiff_t>(one.count);
    if (std::equal(begin, begin + count, old))
      continue;
    if (Status status = updateNode(c); !status)
      return status;
    std::copy_n(begin, count, old);
  }
  return Status::success();
}

void Plan::dropGraph() {
  if (exec)
    context.call().graphExecDestroy(exec);
  if (graph)
    context.call().graphDestroy(graph);
  exec = nullptr;
  graph = nullptr;
}

Status Plan::launchGraph(CUstream stream, CUstream beside, EventPool &events) {
  context.noteQueued(program.name);
  // What the driver cannot update is made anew.
  if (exec && !updateGraph()) {
    if (context.isLost())
      return context.lostStatus();
    dropGraph();
  }
  if (!exec) {
    if (Status status = makeGraph(); !status)
      return status;
    if (Status status = uploadGraph(stream, beside, events); !status)
      return std::move(status).in("program '" + program.name + "'");
  }
  return context
      .check(context.call().graphLaunch(exec, stream), "cuGraphLaunch")
      .in("program '" + program.name + "'");
}

} // namespace tandem::cuda
