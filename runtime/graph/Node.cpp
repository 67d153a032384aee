//===- Node.cpp - the nodes of a run-time graph ---------------------------===//
#include "runtime/graph/Node.h"
#include "runtime/graph/Ending.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Modes.h"

#include <utility>

namespace tandem::graph {

static uint32_t threadNumber() {
  static std::atomic<uint32_t> threads{0};
  static thread_local uint32_t own = threads++;
  return own;
}

static uint64_t nextNumber() {
  static thread_local uint64_t number = 0;
  return number++;
}

Node::Node() : number_(nextNumber()), thread_(threadNumber()) {
  const Modes &now = modes();
  if (!now.anomaly.isOn)
    return;
  trace_ = std::make_unique<Trace>();
  trace_->location = now.location;
  if (const Node *parent = currentNode()) {
    trace_->parent = describe(*parent);
    if (parent->trace() && !parent->trace()->location.empty())
      trace_->parent += " at " + parent->trace()->location;
  }
}

Node::~Node() {
  Ending ending;
  for (Edge &edge : edges_)
    if (edge.node) {
      leave(edge);
      ending.take(std::move(edge.node));
    }
  if (NodeHooks *hooks = hooks_.exchange(nullptr))
    ending.take(std::shared_ptr<NodeHooks>(hooks));
}

std::string describe(const Node &node) {
  return "'" + node.name() + "' (" + std::to_string(node.number()) +
         " of thread " + std::to_string(node.thread()) + ")";
}

Result<std::vector<Value>> Node::savedValues() {
  return Status::unsupported("node " + describe(*this) +
                             " cannot hand over its saved values");
}

Status Node::swapSaved(std::vector<Value> &) {
  return Status::unsupported("node " + describe(*this) +
                             " cannot run with other saved values");
}

Status Node::runWith(std::vector<Value> saved, Gradients &inputs,
                     Gradients &outputs, const RunMode &mode) {
  if (Status status = swapSaved(saved); !status)
    return status;
  RunMode again = mode;
  again.retain = true;
  Status status;
  try {
    status = run(inputs, outputs, again);
  } catch (...) {
    (void)swapSaved(saved);
    throw;
  }
  Status back = swapSaved(saved);
  return status ? back : status;
}

Result<int> Node::add(InputInfo info) {
  if (std::optional<Stream> known = stream(info.device);
      known && *known != info.stream)
    return Status::usage(
        "input " + std::to_string(inputs_.size()) + " of node '" + name() +
        "': expected the stream of its other inputs on '" +
        runtime::toString(info.device) + "' but another one is current");
  usesDevices_ |= !info.device.isHost();
  inputs_.push_back(std::move(info));
  return static_cast<int>(inputs_.size()) - 1;
}

Result<int> Node::addInput(const Tensor &value) {
  return addInput(value.dtype(), value.shape(), value.device());
}

Result<int> Node::addInput(artifact::DType dtype,
                           std::span<const int64_t> shape, Device device) {
  if (Result<int64_t> count = runtime::elementCount(dtype, shape); !count)
    return std::move(count).status();
  InputInfo info;
  info.dtype = dtype;
  info.shape.assign(shape.begin(), shape.end());
  info.device = device;
  info.stream = runtime::currentStream(device);
  return add(std::move(info));
}

int Node::addPlaceholder() {
  inputs_.emplace_back().isPlaceholder = true;
  return static_cast<int>(inputs_.size()) - 1;
}

Status Node::clearInputs() {
  Status status = checkParents("inputs");
  if (status)
    inputs_.clear();
  return status;
}

Status Node::checkEdge(const Edge &edge) const {
  if (!edge)
    return Status::success();
  if (edge.node.get() == this)
    return Status::usage("an edge of node " + describe(*this) +
                         " would lead to the node itself");
  if (edge.input < 0 ||
      static_cast<size_t>(edge.input) >= edge.node->inputs().size())
    return Status::usage("an edge of node " + describe(*this) + " to node " +
                         describe(*edge.node) + ": expected an input below " +
                         std::to_string(edge.node->inputs().size()) +
                         " but got " + std::to_string(edge.input));
  return Status::success();
}

/// A parent's topological number counts on this node's.
Status Node::checkParents(const char *what) const {
  if (parents_.load(std::memory_order_acquire) == 0)
    return Status::success();
  while (parentLock_.test_and_set(std::memory_order_acquire)) {
  }
  std::shared_ptr<Node> parent = parent_.lock();
  parentLock_.clear(std::memory_order_release);
  return Status::usage("the " + std::string(what) + " of node " +
                       describe(*this) + " cannot change: node " +
                       (parent ? describe(*parent) : "of an earlier graph") +
                       " has an edge to it");
}

/// Notes an edge of this node.
void Node::enter(const Edge &edge) {
  if (!edge)
    return;
  Node &child = *edge.node;
  topologicalNumber_ =
      std::max(topologicalNumber_, child.topologicalNumber_ + 1);
  if (child.parents_.fetch_add(1, std::memory_order_acq_rel) > 0)
    return;
  while (child.parentLock_.test_and_set(std::memory_order_acquire)) {
  }
  child.parent_ = weak_from_this();
  child.parentLock_.clear(std::memory_order_release);
}

void Node::leave(const Edge &edge) {
  if (edge)
    edge.node->parents_.fetch_sub(1, std::memory_order_acq_rel);
}

Status Node::addEdge(Edge edge) {
  Status status = checkParents("edges");
  if (status)
    status = checkEdge(edge);
  if (!status)
    return status;
  enter(edge);
  edges_.push_back(std::move(edge));
  return Status::success();
}

Status Node::setEdge(size_t index, Edge edge) {
  if (index >= edges_.size())
    return Status::usage(
        "node " + describe(*this) + ": expected an edge below " +
        std::to_string(edges_.size()) + " but got " + std::to_string(index));
  std::vector<Edge> changed = edges_;
  changed[index] = std::move(edge);
  return setEdges(std::move(changed));
}

Status Node::setEdges(std::vector<Edge> edges) {
  Status status = checkParents("edges");
  for (const Edge &edge : edges)
    if (status)
      status = checkEdge(edge);
  if (!status)
    return status;
  topologicalNumber_ = 0;
  for (const Edge &edge : edges)
    enter(edge);
  for (const Edge &edge : edges_)
    leave(edge);
  edges_.swap(edges);
  return Status::success();
}

Result<bool> Node::shouldCompute(size_t index, bool isForTask) const {
  if (index >= edges_.size())
    return Status::usage(
        "node " + describe(*this) + ": expected an edge below " +
        std::to_string(edges_.size()) + " but got " + std::to_string(index));
  if (!edges_[index])
    return false;
  return !isForTask || isWantedByTask(*this, index);
}

Result<bool>
Node::shouldCompute(std::span<const std::pair<size_t, size_t>> ranges,
                    bool isForTask) const {
  bool any = false;
  for (auto [begin, end] : ranges)
    for (size_t i = begin; i < end; ++i) {
      Result<bool> one = shouldCompute(i, isForTask);
      if (!one)
        return one;
      any |= *one;
    }
  return any;
}

std::optional<Stream> Node::stream(Device device) const {
  for (const InputInfo &input : inputs_)
    if (input.device == device && !input.isPlaceholder)
      return input.stream;
  return std::nullopt;
}

NodeHooks &Node::makeHooks() {
  if (NodeHooks *known = hooks())
    return *known;
  auto made = std::make_unique<NodeHooks>();
  NodeHooks *known = nullptr;
  if (hooks_.compare_exchange_strong(known, made.get(),
                                     std::memory_order_acq_rel))
    return *made.release();
  return *known; // another thread was first
}

std::vector<Edge> edgesOf(std::span<const Value> values) {
  std::vector<Edge> edges;
  for (const Value &value : values)
    edges.push_back(value.edge);
  return edges;
}

Status makeEdge(Value &value, const std::shared_ptr<Node> &node) {
  Result<int> input = node->addInput(value.tensor);
  if (!input)
    return std::move(input).status();
  value.edge = {node, *input};
  return Status::success();
}

} // namespace tandem::graph
