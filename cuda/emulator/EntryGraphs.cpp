//===- EntryGraphs.cpp - graphs and their launches ------------------------===//
#include "cuda/emulator/Copies.h"
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/Graphs.h"
#include "cuda/emulator/Modules.h"

using namespace tandem::emulator;

namespace {
using namespace tandem::cuda::driver;

/// Returns a graph by its handle, that of a capture that goes on as well, or
/// null.
Graph *findGraph(Machine &m, CUgraph handle) {
  for (const auto &capture : m.captures)
    if (static_cast<void *>(capture->graph.get()) == handle)
      return capture->graph.get();
  return m.graphs.find(handle);
}

Node *findNode(Machine &m, CUgraphNode handle) {
  return m.nodes.count(handle) ? reinterpret_cast<Node *>(handle) : nullptr;
}

/// Looks up nodes of a graph; false if one is none.
bool findNodes(Machine &m, const Graph &graph, const CUgraphNode *handles,
               size_t count, std::vector<Node *> &nodes) {
  if (count && !handles)
    return false;
  for (size_t i = 0; i < count; ++i) {
    Node *node = findNode(m, handles[i]);
    if (!node || node->graph != &graph ||
        std::find(nodes.begin(), nodes.end(), node) != nodes.end())
      return false;
    nodes.push_back(node);
  }
  return true;
}

/// Adds a node whose command `make` makes.
template <typename Make>
CUresult addNode(CUgraphNode *node, CUgraph handle,
                 const CUgraphNode *dependencies, size_t count, Make &&make) {
  return withDevice([&](Machine &m, Device &device) {
    Graph *graph = findGraph(m, handle);
    std::vector<Node *> before;
    if (!node || !graph || !findNodes(m, *graph, dependencies, count, before))
      return CUDA_ERROR_INVALID_VALUE;
    Command command;
    if (CUresult result = make(m, command))
      return result;
    command.device = &device;
    *node = reinterpret_cast<CUgraphNode>(
        &graph->add(m, std::move(command), std::move(before)));
    return CUDA_SUCCESS;
  });
}

/// Replaces the command of an executable graph's node by one of the same kind.
template <typename Make>
CUresult setNode(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type,
                 Make &&make) {
  return withDevice([&](Machine &m, Device &) {
    GraphExec *found = m.execs.find(exec);
    Node *node = findNode(m, handle);
    GraphExec::Step *step = found && node ? found->find(node) : nullptr;
    if (!step || step->type != type)
      return CUDA_ERROR_INVALID_VALUE;
    Command command;
    if (CUresult result = make(m, command))
      return result;
    command.device = step->command.device;
    step->command = std::move(command);
    return CUDA_SUCCESS;
  });
}

auto kernelMaker(const CUDA_KERNEL_NODE_PARAMS *p) {
  return [p](Machine &m, Command &command) {
    if (!p)
      return CUDA_ERROR_INVALID_VALUE;
    Function *function = m.functions.find(p->func);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (p->extra)
      return CUDA_ERROR_NOT_SUPPORTED;
    const LaunchShape shape{{p->gridDimX, p->gridDimY, p->gridDimZ},
                            {p->blockDimX, p->blockDimY, p->blockDimZ},
                            p->sharedMemBytes};
    return makeLaunch(m, *function, shape, p->kernelParams, command);
  };
}

auto copyMaker(const CUDA_MEMCPY3D *p, CUcontext context) {
  return [p, context](Machine &m, Command &command) {
    if (!p || (context && !deviceOf(context)))
      return CUDA_ERROR_INVALID_VALUE;
    CopyShape shape;
    Side to, from;
    if (CUresult result = shapeOf(*p, shape, to, from))
      return result;
    return makeCopy(m, shape, to, from, command);
  };
}

auto fillMaker(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
  return [p, context](Machine &m, Command &command) {
    if (!p || (context && !deviceOf(context)))
      return CUDA_ERROR_INVALID_VALUE;
    FillShape shape;
    shape.to = static_cast<uintptr_t>(p->dst);
    shape.value = p->value;
    shape.elementBytes = p->elementSize;
    shape.width = p->width;
    shape.height = p->height;
    shape.pitch = p->pitch;
    return makeFill(m, shape, command);
  };
}

auto hostMaker(const CUDA_HOST_NODE_PARAMS *p) {
  return [p](Machine &, Command &command) {
    if (!p || !p->fn)
      return CUDA_ERROR_INVALID_VALUE;
    command = hostCommand(p->fn, p->userData);
    return CUDA_SUCCESS;
  };
}

/// The graph that an executable one is the flat form of.
std::unique_ptr<Graph> graphOf(Machine &m, const GraphExec &exec) {
  auto graph = std::make_unique<Graph>(m);
  for (const GraphExec::Step &step : exec.steps) {
    std::vector<Node *> before;
    for (size_t other : step.waitsFor)
      before.push_back(graph->nodes[other].get());
    graph->add(m, step.command, std::move(before)).type = step.type;
  }
  return graph;
}
} // namespace

namespace tandem::cuda::driver {

CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
  return withDriver([&](Machine &m) {
    if (!graph || flags)
      return CUDA_ERROR_INVALID_VALUE;
    *graph =
        reinterpret_cast<CUgraph>(&m.graphs.add(std::make_unique<Graph>(m)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return withDriver([&](Machine &m) {
    Graph *graph = m.graphs.find(handle);
    if (!graph)
      return CUDA_ERROR_INVALID_VALUE;
    m.graphs.remove(*graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
                                 const CUgraphNode *dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *parameters) {
  return addNode(node, graph, dependencies, count, kernelMaker(parameters));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph,
                              const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMCPY3D *parameters,
                              CUcontext context) {
  return addNode(node, graph, dependencies, count,
                 copyMaker(parameters, context));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph,
                              const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *parameters,
                              CUcontext context) {
  return addNode(node, graph, dependencies, count,
                 fillMaker(parameters, context));
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph,
                            const CUgraphNode *dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS *parameters) {
  return addNode(node, graph, dependencies, count, hostMaker(parameters));
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph,
                             const CUgraphNode *dependencies, size_t count) {
  return addNode(node, graph, dependencies, count,
                 [](Machine &, Command &command) {
                   command.what = "empty node";
                   return CUDA_SUCCESS;
                 });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph handle,
                                  const CUgraphNode *dependencies, size_t count,
                                  CUgraph child) {
  return withDevice([&](Machine &m, Device &) {
    Graph *inner = m.graphs.find(child);
    if (!inner)
      return CUDA_ERROR_INVALID_VALUE;
    std::unique_ptr<Graph> copy = inner->clone();
    if (CUresult result =
            cuGraphAddEmptyNode(node, handle, dependencies, count))
      return result;
    Node &made = *reinterpret_cast<Node *>(*node);
    made.type = CU_GRAPH_NODE_TYPE_GRAPH;
    made.child = std::move(copy);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from,
                                const CUgraphNode *to, size_t count) {
  return withDriver([&](Machine &m) {
    Graph *graph = findGraph(m, handle);
    if (!graph || (count && (!from || !to)))
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      Node *first = findNode(m, from[i]), *second = findNode(m, to[i]);
      if (!first || !second || first == second || first->graph != graph ||
          second->graph != graph)
        return CUDA_ERROR_INVALID_VALUE;
      auto &before = second->dependencies;
      if (std::find(before.begin(), before.end(), first) != before.end())
        return CUDA_ERROR_INVALID_VALUE;
      before.push_back(first);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
  return withDriver([&](Machine &m) {
    Graph *graph = findGraph(m, handle);
    if (!graph || !count)
      return CUDA_ERROR_INVALID_VALUE;
    if (nodes) {
      for (size_t i = 0; i < *count; ++i)
        nodes[i] = i < graph->nodes.size()
                       ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get())
                       : nullptr;
      *count = std::min(*count, graph->nodes.size());
    } else {
      *count = graph->nodes.size();
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
  return withDriver([&](Machine &m) {
    const Node *node = findNode(m, handle);
    if (!node || !type)
      return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph handle,
                                     unsigned long long /*flags*/) {
  return withDevice([&](Machine &m, Device &) {
    Graph *graph = m.graphs.find(handle);
    if (!exec || !graph)
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<GraphExec>();
    if (!flatten(*graph, made->steps))
      return CUDA_ERROR_INVALID_VALUE;
    assignLanes(m, made->steps);
    ++m.report.counts.graphInstantiations;
    m.report.log("host: instantiate graph, " +
                 std::to_string(made->steps.size()) + " nodes");
    *exec = reinterpret_cast<CUgraphExec>(&m.execs.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult
cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                  const CUDA_KERNEL_NODE_PARAMS *parameters) {
  return setNode(exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                 kernelMaker(parameters));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *parameters,
                                        CUcontext context) {
  return setNode(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                 copyMaker(parameters, context));
}

CUresult
cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                               const CUDA_MEMSET_NODE_PARAMS *parameters,
                               CUcontext context) {
  return setNode(exec, node, CU_GRAPH_NODE_TYPE_MEMSET,
                 fillMaker(parameters, context));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *parameters) {
  return setNode(exec, node, CU_GRAPH_NODE_TYPE_HOST, hostMaker(parameters));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle,
                                            CUgraphNode nodeHandle,
                                            CUgraph childHandle) {
  return withDevice([&](Machine &m, Device &) {
    GraphExec *exec = m.execs.find(handle);
    Node *node = findNode(m, nodeHandle);
    Graph *child = m.graphs.find(childHandle);
    std::vector<GraphExec::Step> before, after;
    if (!exec || !node || !node->child || !child ||
        !flatten(*node->child, before) || !flatten(*child, after))
      return CUDA_ERROR_INVALID_VALUE;
    bool isSame = before.size() == after.size();
    std::vector<GraphExec::Step *> steps;
    for (size_t i = 0; isSame && i < before.size(); ++i) {
      steps.push_back(exec->find(before[i].node));
      isSame = steps.back() && steps.back()->type == after[i].type &&
               before[i].waitsFor == after[i].waitsFor;
    }
    if (!isSame)
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < steps.size(); ++i) {
      after[i].command.device = steps[i]->command.device;
      steps[i]->command = std::move(after[i].command);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph handle,
                              CUgraphExecUpdateResultInfo *info) {
  return withDevice([&](Machine &m, Device &) {
    GraphExec *old = m.execs.find(exec);
    Graph *graph = m.graphs.find(handle);
    std::vector<GraphExec::Step> steps;
    if (!old || !graph || !info || !flatten(*graph, steps))
      return CUDA_ERROR_INVALID_VALUE;
    *info = {};
    auto refuse = [&](CUgraphExecUpdateResult why, const Node *node) {
      info->result = why;
      info->errorNode = reinterpret_cast<CUgraphNode>(const_cast<Node *>(node));
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    };
    if (steps.size() != old->steps.size())
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].waitsFor != old->steps[i].waitsFor)
        return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                      steps[i].node);
      if (steps[i].type != old->steps[i].type)
        return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
                      steps[i].node);
    }
    for (size_t i = 0; i < steps.size(); ++i)
      old->steps[i].command = std::move(steps[i].command);
    m.report.log("host: update graph");
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    GraphExec *exec = m.execs.find(handle);
    if (!exec)
      return CUDA_ERROR_INVALID_VALUE;
    if (on.capture) {
      on.capture->isInvalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    ++m.report.counts.graphUploads;
    Command command;
    command.what =
        "upload of a graph, " + std::to_string(exec->steps.size()) + " nodes";
    command.duration = 1000;
    if (CUresult result = m.push(on, std::move(command)))
      return result;
    exec->upload = on.last;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    GraphExec *exec = m.execs.find(handle);
    if (!exec)
      return CUDA_ERROR_INVALID_VALUE;
    if (!on.capture)
      return launchGraph(m, *exec, on);
    Command command;
    command.what = "graph launch";
    std::unique_ptr<Graph> child = graphOf(m, *exec);
    if (CUresult result = m.push(on, std::move(command)))
      return result;
    Node &node = *on.tail.back();
    node.type = CU_GRAPH_NODE_TYPE_GRAPH;
    node.child = std::move(child);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return withDriver([&](Machine &m) {
    GraphExec *exec = m.execs.find(handle);
    if (!exec)
      return CUDA_ERROR_INVALID_VALUE;
    m.execs.remove(*exec);
    return CUDA_SUCCESS;
  });
}

} // namespace tandem::cuda::driver
