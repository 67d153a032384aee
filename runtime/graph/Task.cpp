//===- Task.cpp - what one backward runs, and when ------------------------===//
#include "runtime/graph/Task.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Modes.h"

#include <algorithm>
#include <utility>

namespace tandem::graph {

namespace {

/// The memory of the tasks of a thread.
struct Memories {
  std::vector<std::unique_ptr<TaskMemory>> byDepth;
  size_t depth = 0;
};
thread_local Memories memories;

TaskMemory &takeMemory() {
  if (memories.depth == memories.byDepth.size())
    memories.byDepth.push_back(std::make_unique<TaskMemory>());
  return *memories.byDepth[memories.depth++];
}

} // namespace

void Lane::clear() {
  ready.clear();
  sums.clear();
  inputs.clear();
  outputs.clear();
  seen.clear();
  noted.clear();
  rests.clear();
  current = -1;
  ran = 0;
  changed.clear();
}

void TaskMemory::clear() {
  map.clear();
  states.clear();
  children.clear();
  work.clear();
  devices.clear();
  own.clear();
  callbacks.clear();
  if (otherCount > 0)
    clearLanes();
}

void TaskMemory::clearLanes() {
  for (Lane &lane : others) {
    lane.clear();
    lane.arrived.clear();
    lane.taken.clear();
    lane.modes.savedHooks = nullptr; // its text is kept for the next
    lane.modes.profiler = nullptr;
  }
  own.arrived.clear();
  modes.savedHooks = nullptr;
  modes.profiler = nullptr;
  otherCount = 0;
  slots.clear();
  incoming.clear();
}

Task::Task(Kind kind, const BackwardOptions &options, const Lane *outer)
    : kind(kind), mode{options.retainGraph || options.createGraph,
                       options.createGraph, options.collected},
      arrivals(options.arrivals), memory(takeMemory()), isInner(outer) {
  memory.own.task = this;
  if (outer)
    this->outer = outer->task->hasLanes ? outer->task : outer->task->outer;
}

Task::~Task() {
  memory.clear();
  --memories.depth;
}

void Task::queue(std::function<Status()> callback) {
  std::lock_guard lock(mutex);
  memory.callbacks.push_back(std::move(callback));
}

Counts Task::counts() const {
  Counts counts{visited, memory.own.ran};
  for (size_t i = 0; i < memory.otherCount; ++i)
    counts.ran += memory.others[i].ran;
  return counts;
}

/// Returns the state of a node, a new one perhaps.
int Task::find(const std::shared_ptr<Node> &node) {
  bool isNew = false;
  int index = memory.map.findOrAdd(
      node.get(), static_cast<int>(memory.states.size()), isNew);
  if (isNew) {
    memory.states.emplace_back().node = node;
    memory.work.push_back(index);
  }
  return index;
}

void Task::countDevice(const Node &node) {
  Device device = deviceOf(node);
  auto known = std::ranges::find(memory.devices, device, &TaskDevice::device);
  if (known == memory.devices.end())
    known = memory.devices.insert(known, {device, 0});
  ++known->nodes;
}

/// Counts for each node the edges that lead to it. What lies below all inputs
/// leads to none of them, and is not looked at.
Status Task::search(std::span<const Root> roots, std::span<const Edge> inputs) {
  uint32_t least = 0;
  if (isSelective()) {
    least = inputs.front().node->topologicalNumber();
    for (const Edge &input : inputs)
      least = std::min(least, input.node->topologicalNumber());
  }
  for (const Root &root : roots)
    if (root.edge.node->topologicalNumber() >= least)
      memory.states[size_t(find(root.edge.node))].isReached = true;
  if (arrivals)
    for (const std::shared_ptr<Node> &node : arrivals->expected())
      ++memory.states[size_t(find(node))].waitsFor;
  while (!memory.work.empty()) {
    int index = memory.work.back();
    memory.work.pop_back();
    Node &node = *memory.states[size_t(index)].node;
    if (arrivals)
      if (Status status = arrivals->look(node); !status)
        return status;
    memory.states[size_t(index)].firstChild = memory.children.size();
    memory.states[size_t(index)].edges = node.edges().size();
    if (node.usesDevices())
      countDevice(node);
    for (const Edge &edge : node.edges()) {
      int child = -1;
      if (edge && edge.node->topologicalNumber() >= least) {
        child = find(edge.node);
        ++memory.states[size_t(child)].waitsFor;
      }
      memory.children.push_back(child);
    }
  }
  visited = memory.states.size();
  return Status::success();
}

/// With inputs, only what leads there runs. A node's topological number is
/// above those of all nodes that it leads to.
void Task::choose(std::span<const Edge> inputs) {
  std::vector<NodeState> &states = memory.states;
  for (NodeState &state : states)
    state.isWanted = false;
  for (const Edge &input : inputs)
    if (int index = memory.map.find(input.node.get()); index >= 0) {
      states[size_t(index)].isCaptured = true;
      states[size_t(index)].isWanted =
          kind == Kind::CollectAt && input.node->isLeaf();
    }
  std::vector<int> &order = memory.work;
  for (size_t i = 0; i < states.size(); ++i)
    order.push_back(static_cast<int>(i));
  std::sort(order.begin(), order.end(), [&](int x, int y) {
    return states[size_t(x)].node->topologicalNumber() <
           states[size_t(y)].node->topologicalNumber();
  });
  for (int index : order) {
    NodeState &state = states[size_t(index)];
    for (size_t i = 0; i < state.edges && !state.isWanted; ++i)
      if (int child = memory.children[state.firstChild + i]; child >= 0)
        state.isWanted =
            states[size_t(child)].isWanted || states[size_t(child)].isCaptured;
  }
  order.clear();
}

void Task::makeReady(Lane &lane, int index) {
  NodeState &state = memory.states[size_t(index)];
  if (!state.isWanted && !state.isCaptured) // nor is what it leads to
    return;
  if (std::exchange(state.isQueued, true))
    return;
  lane.ready.push_back({state.node->number(), index, state.node->isLeaf()});
  std::push_heap(lane.ready.begin(), lane.ready.end());
}

/// Hands a gradient to the input of a node of the own lane, or, before lanes
/// run, of any. `producer` is the stream that it was made on.
Status Task::give(const Edge &edge, int index, Value &&gradient,
                  Stream producer) {
  if (edge.node->inputs()[size_t(edge.input)].isPlaceholder)
    return Status::success();
  Sums::Given given;
  given.gradient = std::move(gradient);
  Status status = note(edge, given, producer);
  return status ? add(laneOf(index), index, std::move(given)) : status;
}

/// Notes for which input a gradient is, and where it was made.
Status Task::note(const Edge &edge, Sums::Given &given, Stream producer) {
  const Node &node = *edge.node;
  Device device = node.inputs()[size_t(edge.input)].device;
  given.input = edge.input;
  return given.note(producer, node.usesDevices()
                                  ? node.stream(device).value_or(nullptr)
                                  : nullptr);
}

Status Task::add(Lane &lane, int index, Sums::Given &&given) {
  NodeState &state = memory.states[size_t(index)];
  int input = given.input;
  Status status =
      lane.sums.add(state.gradients, std::move(given), mode.createGraph);
  if (!status) // no text is made of a success
    return std::move(status).in("input " + std::to_string(input) + " of node " +
                                describe(*state.node));
  return status;
}

Status Task::addRoots(std::span<const Root> roots) {
  for (const Root &root : roots) {
    Value gradient = root.gradient;
    Node &node = *root.edge.node;
    const InputInfo &info = node.inputs()[size_t(root.edge.input)];
    if (!gradient.defined()) {
      if (Result<int64_t> count = runtime::elementCount(info.dtype, info.shape);
          !count || *count != 1)
        return Status::usage("the root '" + node.name() +
                             "' is no scalar: expected a gradient " +
                             describe(info.dtype, info.shape));
      Result<Tensor> one = emptyGradient(info.dtype, info.shape, info.device);
      if (!one)
        return one.status();
      if (Status status = one->fill(1); !status)
        return status;
      gradient = std::move(*one);
    }
    if (Status status = conform(node, root.edge.input, gradient); !status)
      return status;
    int index = memory.map.find(&node);
    if (index < 0)
      continue;
    Stream stream = runtime::currentStream(info.device);
    if (Status status = give(root.edge, index, std::move(gradient), stream);
        !status)
      return status;
  }
  for (const Root &root : roots)
    if (int index = memory.map.find(root.edge.node.get());
        index >= 0 && memory.states[size_t(index)].waitsFor == 0)
      makeReady(laneOf(index), index);
  return Status::success();
}

/// Notes where the caller finds a gradient in the end.
void Task::cameToRest(Lane &lane, const Value &gradient, const Node &node) {
  if (!gradient.defined() || gradient.tensor.device().isHost())
    return;
  Device device = gradient.tensor.device();
  DeviceStream place{device, node.stream(device).value_or(nullptr)};
  if (std::ranges::find(lane.rests, place) == lane.rests.end())
    lane.rests.push_back(place);
}

/// One of the gradients that the node waited for has come, or will not come. A
/// node that no gradient can reach any more does not run, nor does what it
/// alone leads to.
void Task::count(int index) {
  if (--memory.states[size_t(index)].waitsFor > 0)
    return;
  if (memory.states[size_t(index)].isReached)
    return makeReady(memory.own, index);
  std::vector<int> &unreached = memory.work;
  unreached.push_back(index);
  while (!unreached.empty()) {
    NodeState &state = memory.states[size_t(unreached.back())];
    unreached.pop_back();
    state.isQueued = true;
    for (size_t i = 0; i < state.edges; ++i) {
      int child = memory.children[state.firstChild + i];
      if (child < 0 || --memory.states[size_t(child)].waitsFor > 0)
        continue;
      if (memory.states[size_t(child)].isReached)
        makeReady(memory.own, child);
      else
        unreached.push_back(child);
    }
  }
}

/// Takes what came from outside, in the order of the current streams.
Status Task::arrive(Arrival arrival) {
  int index = memory.map.find(arrival.node.get());
  memory.states[size_t(index)].isReached = !arrival.isUnused;
  for (size_t i = 0; i < arrival.gradients.size(); ++i) {
    Value &gradient = arrival.gradients[i];
    if (!gradient.defined())
      continue;
    int input = static_cast<int>(i);
    if (Status status = conform(*arrival.node, input, gradient); !status)
      return status;
    Stream stream = runtime::currentStream(gradient.tensor.device());
    if (Status status =
            give({arrival.node, input}, index, std::move(gradient), stream);
        !status)
      return status;
  }
  count(index);
  return Status::success();
}

Status Task::runArrivals() {
  while (true) {
    if (Status status = runReady(); !status || !arrivals)
      return status;
    Result<std::optional<Arrival>> next = arrivals->next();
    if (!next)
      return std::move(next).status();
    if (!*next)
      return Status::success();
    if (Status status = arrive(std::move(**next)); !status)
      return status;
  }
}

Status Task::runReady() {
  Lane &lane = memory.own;
  while (!lane.ready.empty()) {
    if (outer && isStopped())
      return stopped();
    if (arrivals)
      if (Status status = arrivals->goOn(); !status)
        return status;
    std::pop_heap(lane.ready.begin(), lane.ready.end());
    int index = lane.ready.back().state;
    lane.ready.pop_back();
    if (Status status = runNode(lane, index); !status)
      return status;
  }
  return Status::success();
}

/// A node that waits for an edge which is gone never gets ready.
Status Task::checkAllRan() const {
  std::string changed = memory.own.changed;
  for (size_t i = 0; changed.empty() && i < memory.otherCount; ++i)
    changed = memory.others[i].changed;
  for (const NodeState &state : memory.states)
    if (!state.isQueued && (state.isWanted || state.isCaptured))
      return Status::usage(
          "node " + describe(*state.node) + " never got ready: " +
          std::to_string(state.waitsFor) + " of its gradients did not come" +
          (changed.empty() ? "" : "; " + changed));
  return Status::success();
}

/// Makes the caller's streams wait for what came to rest.
Status Task::joinStreams(const Lane &lane) {
  for (const DeviceStream &place : lane.rests) {
    Stream caller = runtime::currentStream(place.device);
    Result<runtime::Backend *> backend = runtime::backendOf(place.device);
    if (!backend)
      return backend.status();
    if (Status status = (*backend)->wait(caller, place.stream); !status)
      return status;
  }
  return Status::success();
}

Status Task::finish() {
  Status status = joinStreams(memory.own);
  for (size_t i = 0; status && i < memory.otherCount; ++i)
    status = joinStreams(memory.others[i]);
  return status ? runCallbacks() : status;
}

Status Task::runCallbacks() {
  for (size_t i = 0; i < memory.callbacks.size(); ++i) {
    std::function<Status()> callback = std::move(memory.callbacks[i]);
    if (Status status = callback(); !status)
      return status;
  }
  return Status::success();
}

bool Task::isWanted(const Lane &lane, const Node &node, size_t edge) const {
  if (lane.current < 0 ||
      memory.states[size_t(lane.current)].node.get() != &node)
    return true;
  const NodeState &state = memory.states[size_t(lane.current)];
  if (!isSelective() || edge >= state.edges)
    return true;
  int child = memory.children[state.firstChild + edge];
  return child >= 0 && (memory.states[size_t(child)].isWanted ||
                        memory.states[size_t(child)].isCaptured);
}

Status Task::run(std::span<const Root> from, std::span<const Edge> inputs,
                 Gradients *given) {
  roots = from;
  if (roots.empty() && !arrivals)
    return Status::usage("expected at least one root of the backward");
  for (size_t i = 0; i < roots.size(); ++i)
    if (!roots[i].edge)
      return Status::usage("root " + std::to_string(i) +
                           " does not require grad" +
                           (isInner ? "; what is computed in a backward has no "
                                      "history unless grad mode is set on there"
                                    : ""));
  wanted = inputs;
  results = given;
  if (Status status = search(roots, inputs); !status)
    return status;
  if (isSelective())
    choose(inputs);
  if (!memory.devices.empty() && !arrivals)
    spread(roots);
  if (Status status = addRoots(roots); !status)
    return status;
  if (Status status = hasLanes ? runLanes() : runArrivals(); !status)
    return status;
  if (Status status = checkAllRan(); !status)
    return status;
  return finish();
}

} // namespace tandem::graph
