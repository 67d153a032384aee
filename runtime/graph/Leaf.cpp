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
  std::lock_guard lock(mutex);
  if (gradient_.defined()) {
    if (!mode.createGraph) {
      Tensor before = gradient_.tensor;
      return addTensors(gradient_.tensor, before, gradient.tensor);
    }
    // The old gradient may be part of somebody's graph: it is not written.
    Result<Value> sum = ops::add(gradient_, gradient);
    if (!sum)
      return std::move(sum).status();
    Result<Tensor> laid = laidOut(sum->tensor);
    if (!laid)
      return std::move(laid).status();
    gradient_ = {std::move(*laid), std::move(sum->edge)};
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
  gradient_ = {std::move(*laid), std::move(gradient.edge)};
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

} // namespace tandem::graph
