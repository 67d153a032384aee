//===- Leaf.cpp - where gradients are collected ---------------------------===//
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Ops.h"
#include "runtime/graph/Sum.h"
#include "runtime/tensor/Strides.h"

namespace tandem::graph {

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

Status Leaf::run(Gradients &inputs, Gradients &, const RunMode &mode) {
  Value &gradient = inputs[0];
  if (!gradient.defined())
    return Status::success();
  if (mode.collected)
    return mode.collected->add(
        std::static_pointer_cast<Leaf>(shared_from_this()),
        [&](Value &sum) { return add(sum, gradient, mode); });
  std::lock_guard lock(mutex);
  return add(gradient_, gradient, mode);
}

Status Leaf::add(Value &sum, Value &gradient, const RunMode &mode) const {
  if (sum.defined()) {
    if (!mode.createGraph) {
      Tensor before = sum.tensor;
      return addTensors(sum.tensor, before, gradient.tensor);
    }
    // The old gradient may be part of somebody's graph: it is not written.
    Result<Value> made = ops::add(sum, gradient);
    if (!made)
      return std::move(made).status();
    Result<Tensor> laid = laidOut(made->tensor);
    if (!laid)
      return std::move(laid).status();
    sum = {std::move(*laid), std::move(made->edge)};
    return Status::success();
  }
  // What nobody else has is taken over.
  bool isOwn = !mode.createGraph && gradient.tensor.storage().use_count() == 1;
  Result<Tensor> laid = laidOut(gradient.tensor);
  if (laid && !isOwn && laid->storage() == gradient.tensor.storage())
    laid = runtime::copyWithStrides(gradient.tensor, strides_);
  if (!laid)
    return laid.status();
  // A copy has the history of what it is a copy of.
  sum = {std::move(*laid), std::move(gradient.edge)};
  return Status::success();
}

Value Leaf::value() const {
  std::lock_guard lock(mutex);
  return gradient_;
}

void Leaf::setValue(Value gradient) {
  std::lock_guard lock(mutex);
  std::swap(gradient_, gradient); // the old one ends without the lock
}

Status GradientMap::add(const std::shared_ptr<Leaf> &leaf,
                        const std::function<Status(Value &sum)> &add) {
  std::lock_guard lock(mutex);
  auto [place, isNew] = places.try_emplace(leaf.get(), gradients.size());
  if (isNew)
    gradients.emplace_back(leaf, Value());
  return add(gradients[place->second].second);
}

Value GradientMap::find(const Node &leaf) const {
  std::lock_guard lock(mutex);
  auto place = places.find(&leaf);
  return place == places.end() ? Value() : gradients[place->second].second;
}

std::vector<std::pair<std::shared_ptr<Leaf>, Value>> GradientMap::all() const {
  std::lock_guard lock(mutex);
  return gradients;
}

void GradientMap::clear() {
  std::lock_guard lock(mutex);
  places.clear();
  gradients.clear();
}

} // namespace tandem::graph
