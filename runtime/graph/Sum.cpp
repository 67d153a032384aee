//===- Sum.cpp - sums of gradients, in the order of streams ---------------===//
#include "runtime/graph/Sum.h"
#include "runtime/Strides.h"

#include <algorithm>

namespace tandem::graph {

using runtime::Extents;

Status addTensors(Tensor &sum, const Tensor &x, const Tensor &y) {
  if (x.dtype() != y.dtype() || x.device() != y.device() ||
      !std::equal(x.shape().begin(), x.shape().end(), y.shape().begin(),
                  y.shape().end()))
    return Status::usage("expected a gradient of " +
                         describe(x.dtype(), x.shape()) + " on '" +
                         runtime::toString(x.device()) + "' but got " +
                         describe(y.dtype(), y.shape()) + " on '" +
                         runtime::toString(y.device()) + "'");
  // In the order in which x lies in memory, if it has one.
  std::optional<Extents> order = runtime::denseOrder(x.shape(), x.strides());
  auto ordered = [&](const Tensor &tensor) -> Result<Tensor> {
    return order ? runtime::permuted(tensor, *order) : tensor;
  };
  auto dense = [&](const Tensor &tensor) -> Result<Tensor> {
    Result<Tensor> view = ordered(tensor);
    return view ? view->dense() : view;
  };
  Result<Tensor> a = dense(x), b = dense(y);
  if (!a)
    return a.status();
  if (!b)
    return b.status();
  bool isInPlace = sum.defined() && ordered(sum)->isDense();
  if (!isInPlace) {
    Result<Tensor> made = Tensor::empty(x.dtype(), x.shape(), x.device());
    if (made && order)
      made = made->view(x.shape(), x.strides());
    if (!made)
      return made.status();
    sum = std::move(*made);
  }
  if (x.elements() == 0)
    return Status::success();
  Result<runtime::Backend *> backend = runtime::backendOf(x.device());
  if (!backend)
    return backend.status();
  Stream stream = runtime::currentStream(x.device());
  for (const Tensor &used : {sum, *a, *b})
    used.storage()->useOn(stream);
  return (*backend)->add(x.dtype(), sum.mutableData(), a->data(), b->data(),
                         x.elements(), stream);
}

Sum::~Sum() {
  for (Part &part : parts)
    if (part.made)
      part.gradient.storage()->backend()->releaseFence(part.made);
}

Status Sum::add(Tensor gradient, Stream producer, Stream consumer) {
  Part &part = parts.emplace_back();
  part.gradient = std::move(gradient);
  runtime::Backend *backend = part.gradient.storage()->backend();
  if (!backend || producer == consumer) // null: see Storage::backend
    return Status::success();
  part.gradient.storage()->useOn(consumer);
  return backend->record(part.made, producer);
}

Result<Tensor> Sum::take(Stream consumer) {
  Tensor sum;
  bool isOwn = false;
  for (Part &part : parts) {
    if (part.made)
      if (Status status =
              part.gradient.storage()->backend()->waitFor(consumer, part.made);
          !status)
        return status;
    if (!sum.defined()) {
      sum = part.gradient;
      continue;
    }
    // What came may be somebody else's: the first sum goes to a new tensor.
    Tensor before = sum;
    if (!isOwn)
      sum = Tensor();
    isOwn = true;
    if (Status status = addTensors(sum, before, part.gradient); !status)
      return status;
  }
  for (Part &part : parts) {
    if (part.made)
      part.gradient.storage()->backend()->releaseFence(part.made);
    part.made = nullptr;
  }
  parts.clear();
  return sum;
}

} // namespace tandem::graph
