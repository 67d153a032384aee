//===- Engine.cpp - runs the backward of a run-time graph -----------------===//
#include "runtime/graph/Engine.h"
#include "runtime/graph/Sum.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <queue>
#include <unordered_map>
#include <utility>

namespace tandem::graph {

namespace {

/// What is known of a node during one backward.
struct NodeState {
  int waitsFor = 0;     ///< edges from which gradients may still come
  bool isWanted = true; ///< it runs
  bool isQueued = false;
  std::vector<Sum> sums;   ///< for each input
  std::vector<int> wanted; ///< inputs whose gradients were asked for
};

/// A stream of a device.
struct DeviceStream {
  Device device;
  Stream stream;
  bool operator==(const DeviceStream &) const = default;
};

/// Makes the streams of a node's devices current.
class NodeStreams {
public:
  explicit NodeStreams(const Node &node) {
    for (const InputInfo &input : node.inputs())
      scopes.emplace_back(input.device, input.stream);
  }
  ~NodeStreams() {
    while (!scopes.empty()) // the last first
      scopes.pop_back();
  }

private:
  std::deque<runtime::StreamScope> scopes;
};

class Task {
public:
  explicit Task(const BackwardOptions &options) : options(options) {}

  Status run(std::span<const Root> roots, std::span<const Edge> inputs,
             Gradients *results);
  void queue(std::function<Status()> callback) {
    callbacks.push_back(std::move(callback));
  }

private:
  void countEdges(std::span<const Root> roots);
  void chooseWanted(std::span<const Edge> inputs);
  Status addRoots(std::span<const Root> roots);
  Status give(const Edge &edge, Tensor gradient, Stream producer);
  Status runNode(Node &node);
  Status callNode(Node &node, NodeState &state);
  Status finish();
  void cameToRest(const Tensor &gradient, const Node &node);
  void makeReady(Node *node);

  struct Later {
    bool operator()(const Node *x, const Node *y) const {
      if (x->isLeaf() != y->isLeaf())
        return y->isLeaf();
      return x->number() < y->number();
    }
  };

  BackwardOptions options;
  std::unordered_map<Node *, NodeState> states;
  std::priority_queue<Node *, std::vector<Node *>, Later> ready;
  std::vector<std::pair<Edge, Tensor>> captured;
  std::vector<DeviceStream> rests;
  std::deque<std::function<Status()>> callbacks;
};

thread_local Task *currentTask = nullptr;

/// Counts for each node the edges that lead to it.
void Task::countEdges(std::span<const Root> roots) {
  std::vector<Node *> work;
  auto visit = [&](Node *node) {
    auto [it, isNew] = states.try_emplace(node);
    if (!isNew)
      return;
    it->second.sums.resize(node->inputs().size());
    work.push_back(node);
  };
  for (const Root &root : roots)
    visit(root.edge.node.get());
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    for (const Edge &edge : node->edges())
      if (edge) {
        visit(edge.node.get());
        ++states[edge.node.get()].waitsFor;
      }
  }
}

/// With `inputs`, only what leads there runs.
void Task::chooseWanted(std::span<const Edge> inputs) {
  std::unordered_map<Node *, std::vector<Node *>> users;
  for (auto &[node, state] : states) {
    state.isWanted = false;
    for (const Edge &edge : node->edges())
      if (edge)
        users[edge.node.get()].push_back(node);
  }
  std::vector<Node *> work;
  for (const Edge &input : inputs)
    if (auto it = states.find(input.node.get()); it != states.end()) {
      it->second.wanted.push_back(input.input);
      for (Node *user : users[input.node.get()])
        work.push_back(user);
    }
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    if (std::exchange(states[node].isWanted, true))
      continue;
    for (Node *user : users[node])
      work.push_back(user);
  }
}

void Task::makeReady(Node *node) {
  NodeState &state = states[node];
  if (!std::exchange(state.isQueued, true))
    ready.push(node);
}

/// Hands a gradient to the input of a node. `producer` is the stream that it
/// was made on.
Status Task::give(const Edge &edge, Tensor gradient, Stream producer) {
  Node &node = *edge.node;
  const InputInfo &info = node.inputs()[edge.input];
  if (gradient.dtype() != info.dtype || gradient.device() != info.device ||
      !std::equal(gradient.shape().begin(), gradient.shape().end(),
                  info.shape.begin(), info.shape.end()))
    return Status::usage("node '" + node.name() + "', input " +
                         std::to_string(edge.input) + ": expected a gradient " +
                         describe(info.dtype, info.shape) + " on '" +
                         runtime::toString(info.device) + "' but got " +
                         describe(gradient.dtype(), gradient.shape()) +
                         " on '" + runtime::toString(gradient.device()) + "'");
  Stream consumer = node.stream(info.device).value_or(nullptr);
  return states[&node].sums[edge.input].add(std::move(gradient), producer,
                                            consumer);
}

Status Task::addRoots(std::span<const Root> roots) {
  for (const Root &root : roots) {
    Tensor gradient = root.gradient;
    const InputInfo &info = root.edge.node->inputs()[root.edge.input];
    if (!gradient.defined()) {
      if (Result<int64_t> count = runtime::elementCount(info.dtype, info.shape);
          !count || *count != 1)
        return Status::usage("the root '" + root.edge.node->name() +
                             "' is no scalar: expected a gradient " +
                             describe(info.dtype, info.shape));
      Result<Tensor> one = Tensor::empty(info.dtype, info.shape, info.device);
      if (!one)
        return one.status();
      if (Status status = one->fill(1); !status)
        return status;
      gradient = std::move(*one);
    }
    Stream stream = runtime::currentStream(info.device);
    if (Status status = give(root.edge, std::move(gradient), stream); !status)
      return status;
  }
  for (const Root &root : roots)
    if (states[root.edge.node.get()].waitsFor == 0)
      makeReady(root.edge.node.get());
  return Status::success();
}

/// Notes where the caller finds a gradient in the end.
void Task::cameToRest(const Tensor &gradient, const Node &node) {
  if (!gradient.defined())
    return;
  DeviceStream place{gradient.device(),
                     node.stream(gradient.device()).value_or(nullptr)};
  if (std::find(rests.begin(), rests.end(), place) == rests.end())
    rests.push_back(place);
}

Status Task::callNode(Node &node, NodeState &state) {
  NodeStreams streams(node);
  Gradients inputs, outputs(node.edges().size());
  for (size_t i = 0; i < state.sums.size(); ++i) {
    Result<Tensor> sum = state.sums[i].take(node.inputs()[i].stream);
    if (!sum)
      return std::move(sum).status().in("node '" + node.name() + "'");
    for (int wanted : state.wanted)
      if (wanted == static_cast<int>(i)) {
        Result<Tensor> laid = *sum;
        if (auto *leaf = dynamic_cast<const Leaf *>(&node);
            leaf && sum->defined())
          laid = leaf->laidOut(*sum);
        if (!laid)
          return std::move(laid).status().in("node '" + node.name() + "'");
        captured.push_back({{node.shared_from_this(), wanted}, *laid});
        cameToRest(*laid, node);
        break;
      }
    inputs.push_back(std::move(*sum));
  }
  if (!state.isWanted)
    return Status::success();
  try {
    for (const Node::PreHook &hook : node.preHooks()) {
      size_t count = inputs.size();
      if (Status status = hook(inputs); !status)
        return status;
      if (inputs.size() != count)
        return Status::usage("pre-hook of node '" + node.name() +
                             "': expected " + std::to_string(count) +
                             " gradients but got " +
                             std::to_string(inputs.size()));
    }
    bool isEnd = true;
    for (const Edge &edge : node.edges())
      isEnd &= !edge;
    if (isEnd)
      for (const Tensor &input : inputs)
        cameToRest(input, node);
    Gradients seen;
    if (!node.postHooks().empty())
      seen = inputs;
    if (Status status =
            node.run(std::move(inputs), outputs, options.retainGraph);
        !status)
      return status;
    if (outputs.size() != node.edges().size())
      return Status::usage("node '" + node.name() + "': expected " +
                           std::to_string(node.edges().size()) +
                           " gradients but got " +
                           std::to_string(outputs.size()));
    for (const Node::PostHook &hook : node.postHooks())
      if (Status status = hook(outputs, seen); !status)
        return status;
  } catch (const std::exception &error) {
    return Status::failed(error.what());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Edge &edge = node.edges()[i];
    if (!edge || !outputs[i].defined())
      continue;
    Stream producer = runtime::currentStream(outputs[i].device());
    if (Status status = give(edge, std::move(outputs[i]), producer); !status)
      return std::move(status).in("output " + std::to_string(i) + " of node '" +
                                  node.name() + "'");
  }
  return Status::success();
}

Status Task::runNode(Node &node) {
  if (Status status = callNode(node, states[&node]); !status)
    return status;
  for (const Edge &edge : node.edges())
    if (edge && --states[edge.node.get()].waitsFor == 0)
      makeReady(edge.node.get());
  return Status::success();
}

Status Task::finish() {
  for (const DeviceStream &place : rests) {
    Stream caller = runtime::currentStream(place.device);
    Result<runtime::Backend *> backend = runtime::backendOf(place.device);
    if (!backend)
      return backend.status();
    if (Status status = (*backend)->wait(caller, place.stream); !status)
      return status;
  }
  while (!callbacks.empty()) {
    std::function<Status()> callback = std::move(callbacks.front());
    callbacks.pop_front();
    if (Status status = callback(); !status)
      return status;
  }
  return Status::success();
}

Status Task::run(std::span<const Root> roots, std::span<const Edge> inputs,
                 Gradients *results) {
  if (roots.empty())
    return Status::usage("expected at least one root of the backward");
  for (size_t i = 0; i < roots.size(); ++i)
    if (!roots[i].edge)
      return Status::usage("root " + std::to_string(i) +
                           " does not require grad");
  if (results && inputs.empty())
    return Status::usage("expected at least one value to differentiate for");
  countEdges(roots);
  if (results)
    chooseWanted(inputs);
  if (Status status = addRoots(roots); !status)
    return status;
  while (!ready.empty()) {
    Node *node = ready.top();
    ready.pop();
    if (Status status = runNode(*node); !status)
      return status;
  }
  if (results) {
    results->resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      for (auto &[edge, gradient] : captured)
        if (edge == inputs[i])
          (*results)[i] = gradient;
  }
  return finish();
}

/// A backward of this thread, inside of another one perhaps.
Status runTask(std::span<const Root> roots, std::span<const Edge> inputs,
               const BackwardOptions &options, Gradients *results) {
  Task task(options);
  Task *outer = std::exchange(currentTask, &task);
  Status status = task.run(roots, inputs, results);
  currentTask = outer;
  return status;
}

} // namespace

Status backward(std::span<const Root> roots, const BackwardOptions &options) {
  return runTask(roots, {}, options, nullptr);
}

Result<Gradients> grad(std::span<const Root> roots,
                       std::span<const Edge> inputs,
                       const BackwardOptions &options) {
  Gradients results;
  if (Status status = runTask(roots, inputs, options, &results); !status)
    return status;
  return results;
}

Status queueCallback(std::function<Status()> callback) {
  if (!currentTask)
    return Status::usage(
        "a final callback can only be queued during a backward");
  currentTask->queue(std::move(callback));
  return Status::success();
}

} // namespace tandem::graph
