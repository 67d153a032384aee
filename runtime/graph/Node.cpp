//===- Node.cpp - the nodes of a run-time graph ---------------------------===//
#include "runtime/graph/Node.h"
#include "runtime/Strides.h"
#include "runtime/graph/Sum.h"

#include <utility>

namespace tandem::graph {

static uint64_t nextNumber() {
  static thread_local uint64_t number = 0;
  return number++;
}

Node::Node() : number_(nextNumber()) {}

/// A chain of nodes ends one by one, not in a recursion as deep as it is long.
Node::~Node() {
  static thread_local std::vector<std::shared_ptr<Node>> *ending = nullptr;
  std::vector<std::shared_ptr<Node>> mine;
  bool isFirst = !ending;
  if (isFirst)
    ending = &mine;
  for (Edge &edge : edges_)
    if (edge.node)
      ending->push_back(std::move(edge.node));
  if (!isFirst)
    return;
  while (!mine.empty()) {
    std::shared_ptr<Node> last = std::move(mine.back());
    mine.pop_back();
  }
  ending = nullptr;
}

Result<int> Node::addInput(const Tensor &value) {
  InputInfo info;
  info.dtype = value.dtype();
  info.shape.assign(value.shape().begin(), value.shape().end());
  info.device = value.device();
  info.stream = runtime::currentStream(info.device);
  if (std::optional<Stream> known = stream(info.device);
      known && *known != info.stream)
    return Status::usage(
        "input " + std::to_string(inputs_.size()) + " of node '" + name() +
        "': expected the stream of its other inputs on '" +
        runtime::toString(info.device) + "' but another one is current");
  inputs_.push_back(std::move(info));
  return static_cast<int>(inputs_.size()) - 1;
}

void Node::addEdge(Edge edge) { edges_.push_back(std::move(edge)); }

std::optional<Stream> Node::stream(Device device) const {
  for (const InputInfo &input : inputs_)
    if (input.device == device)
      return input.stream;
  return std::nullopt;
}

Leaf::Leaf(std::string name, const Tensor &value)
    : name_(std::move(name)), strides_(runtime::gradientStrides(value)) {}

Result<Value> Leaf::make(std::string name, const Tensor &value) {
  std::shared_ptr<Leaf> leaf(new Leaf(std::move(name), value));
  Result<int> input = leaf->addInput(value);
  if (!input)
    return input.status();
  return Value{value, {std::move(leaf), *input}};
}

Result<Tensor> Leaf::laidOut(const Tensor &gradient) const {
  return runtime::withStrides(gradient, strides_);
}

Status Leaf::run(Gradients inputs, Gradients &, bool) {
  Tensor &gradient = inputs[0];
  if (!gradient.defined())
    return Status::success();
  if (gradient_.defined()) {
    Tensor before = gradient_;
    return addTensors(gradient_, before, gradient);
  }
  // What nobody else has is taken over.
  bool isOwn = gradient.storage().use_count() == 1;
  Result<Tensor> laid = laidOut(gradient);
  if (laid && !isOwn && laid->storage() == gradient.storage())
    laid = runtime::copyWithStrides(gradient, strides_);
  if (!laid)
    return laid.status();
  gradient_ = std::move(*laid);
  return Status::success();
}

} // namespace tandem::graph
