//===- Graphs.cpp - graphs of commands ------------------------------------===//
#include "cuda/emulator/Graphs.h"

#include "cuda/emulator/Machine.h"

#include <unordered_map>

using namespace tandem::emulator;
using namespace tandem::cuda::driver;

namespace {
CUgraphNodeType nodeType(Command::Kind kind) {
  switch (kind) {
  case Command::Kind::Kernel:
    return CU_GRAPH_NODE_TYPE_KERNEL;
  case Command::Kind::Copy:
    return CU_GRAPH_NODE_TYPE_MEMCPY;
  case Command::Kind::Memset:
    return CU_GRAPH_NODE_TYPE_MEMSET;
  case Command::Kind::Host:
    return CU_GRAPH_NODE_TYPE_HOST;
  case Command::Kind::Allocate:
  case Command::Kind::Free:
  case Command::Kind::Delay:
  case Command::Kind::Empty:
    break;
  }
  return CU_GRAPH_NODE_TYPE_EMPTY;
}
} // namespace

Graph::~Graph() {
  for (const auto &node : nodes)
    machine.nodes.erase(node.get());
}

Node &Graph::add(Machine &owner, Command command,
                 std::vector<Node *> dependencies) {
  auto node = std::make_unique<Node>();
  node->graph = this;
  node->index = nodes.size();
  node->type = nodeType(command.kind);
  node->command = std::move(command);
  node->dependencies = std::move(dependencies);
  owner.nodes.insert(node.get());
  nodes.push_back(std::move(node));
  return *nodes.back();
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>(machine);
  for (const auto &node : nodes) {
    Node &made = copy->add(machine, node->command, {});
    made.type = node->type;
    if (node->child)
      made.child = node->child->clone();
  }
  for (const auto &node : nodes)
    for (const Node *other : node->dependencies)
      copy->nodes[node->index]->dependencies.push_back(
          copy->nodes[other->index].get());
  return copy;
}

std::vector<const Node *> Graph::sorted() const {
  std::vector<size_t> unmet(nodes.size());
  std::vector<std::vector<size_t>> waiting(nodes.size());
  std::set<size_t> ready;
  for (const auto &node : nodes) {
    unmet[node->index] = node->dependencies.size();
    for (const Node *other : node->dependencies)
      waiting[other->index].push_back(node->index);
    if (node->dependencies.empty())
      ready.insert(node->index);
  }
  std::vector<const Node *> order;
  while (!ready.empty()) {
    const size_t index = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(nodes[index].get());
    for (size_t other : waiting[index])
      if (--unmet[other] == 0)
        ready.insert(other);
  }
  return order;
}

GraphExec::Step *GraphExec::find(const Node *node) {
  for (Step &step : steps)
    if (step.node == node)
      return &step;
  return nullptr;
}

namespace {
/// Appends the steps of `graph`, whose first ones wait for `before`; sets
/// `after` to its last ones (to `before` if it is empty).
bool append(const Graph &graph, const std::vector<size_t> &before,
            std::vector<GraphExec::Step> &steps, std::vector<size_t> &after) {
  const std::vector<const Node *> order = graph.sorted();
  if (order.size() != graph.nodes.size())
    return false;
  // What waiting for a node means: one step, or the last ones of a child.
  std::unordered_map<const Node *, std::vector<size_t>> ends;
  std::set<const Node *> last(order.begin(), order.end());
  for (const Node *node : order) {
    std::vector<size_t> waitsFor;
    for (const Node *other : node->dependencies) {
      const auto &of = ends[other];
      waitsFor.insert(waitsFor.end(), of.begin(), of.end());
      last.erase(other);
    }
    if (node->dependencies.empty())
      waitsFor = before;
    std::sort(waitsFor.begin(), waitsFor.end());
    waitsFor.erase(std::unique(waitsFor.begin(), waitsFor.end()),
                   waitsFor.end());
    if (node->child) {
      std::vector<size_t> childEnds;
      if (!append(*node->child, waitsFor, steps, childEnds))
        return false;
      ends[node] = std::move(childEnds);
      continue;
    }
    for (size_t i : waitsFor)
      steps[i].isLast = false;
    ends[node] = {steps.size()};
    steps.push_back(
        {node, node->type, node->command, std::move(waitsFor), 0, true});
  }
  after.clear();
  for (const Node *node : order)
    if (last.count(node))
      after.insert(after.end(), ends[node].begin(), ends[node].end());
  if (order.empty())
    after = before;
  return true;
}
} // namespace

bool tandem::emulator::flatten(const Graph &graph,
                               std::vector<GraphExec::Step> &steps) {
  steps.clear();
  std::vector<size_t> after;
  return append(graph, {}, steps, after);
}

void tandem::emulator::assignLanes(Machine &machine,
                                   std::vector<GraphExec::Step> &steps) {
  std::vector<bool> continued(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    GraphExec::Step &step = steps[i];
    auto from = std::find_if(step.waitsFor.begin(), step.waitsFor.end(),
                             [&](size_t other) { return !continued[other]; });
    if (from == step.waitsFor.end()) {
      step.lane = machine.newLane();
      continue;
    }
    continued[*from] = true;
    step.lane = steps[*from].lane;
  }
}

CUresult tandem::emulator::launchGraph(Machine &machine, GraphExec &exec,
                                       Stream &stream) {
  ++machine.report.counts.graphLaunches;
  if (stream.isLegacy)
    if (CUresult result = machine.captureImplicit(stream))
      return result;
  if (machine.report.isLogging())
    machine.report.log(stream.name + ": graph launch, " +
                       std::to_string(exec.steps.size()) + " nodes");
  Command begin;
  begin.what = "graph launch";
  if (!exec.upload && !exec.lastLaunch)
    begin.duration = 1000;
  std::vector<OperationPtr> also;
  if (exec.lastLaunch)
    also.push_back(exec.lastLaunch);
  const OperationPtr first = machine.submit(stream, std::move(begin), also);
  std::vector<OperationPtr> operations, ends;
  for (const GraphExec::Step &step : exec.steps) {
    std::vector<OperationPtr> waitsFor{first};
    for (size_t other : step.waitsFor)
      waitsFor.push_back(operations[other]);
    operations.push_back(
        machine.submitOn(stream, step.lane, step.command, std::move(waitsFor)));
    if (step.isLast)
      ends.push_back(operations.back());
  }
  Command end;
  end.what = "end of the graph launch";
  exec.lastLaunch = machine.submit(stream, std::move(end), ends);
  return stream.device->error == CUDA_ERROR_ECC_UNCORRECTABLE
             ? stream.device->error
             : CUDA_SUCCESS;
}
