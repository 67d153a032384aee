//===- Sum.cpp - sums of gradients, in the order of streams ---------------===//
#include "runtime/graph/Sum.h"
#include "runtime/graph/Ops.h"
#include "runtime/tensor/Strides.h"

#include <algorithm>

namespace tandem::graph {

using runtime::Extents;

namespace {

/// Gradients that wait for their next use.
struct Spare {
  static constexpr size_t kMost = 32;
  static constexpr int64_t kMostBytes = 1 << 16; // of each
  std::vector<Tensor> tensors;
};
thread_local Spare spare;

} // namespace

Result<Tensor> emptyGradient(artifact::DType dtype,
                             std::span<const int64_t> shape, Device device) {
  for (size_t i = spare.tensors.size(); device.isHost() && i-- > 0;) {
    Tensor &tensor = spare.tensors[i];
    if (tensor.dtype() != dtype || !std::ranges::equal(tensor.shape(), shape))
      continue;
    std::swap(tensor, spare.tensors.back());
    Tensor found = std::move(spare.tensors.back());
    spare.tensors.pop_back();
    return found;
  }
  return Tensor::empty(dtype, shape, device);
}

void recycle(Value &gradient) {
  const Tensor &tensor = gradient.tensor;
  if (!tensor.defined() || !tensor.device().isHost() ||
      tensor.storage().use_count() != 1 || tensor.bytes() > Spare::kMostBytes ||
      spare.tensors.size() >= Spare::kMost || !tensor.isDense() ||
      tensor.storage()->wasResized() || // its memory must be the runtime's
      tensor.data() != tensor.storage()->data() ||
      !tensor.storage()->checkResizable().ok())
    return;
  spare.tensors.reserve(Spare::kMost); // once
  spare.tensors.push_back(tensor.detach());
  gradient = Value();
}

/// sum = x + y, where the elements of all three lie in the same order.
static Status addDense(Tensor &sum, const Tensor &x, const Tensor &y) {
  if (x.elements() == 0)
    return Status::success();
  Result<runtime::Backend *> backend = runtime::backendOf(x.device());
  if (!backend)
    return backend.status();
  Stream stream = runtime::currentStream(x.device());
  for (const Tensor *used : {&std::as_const(sum), &x, &y})
    used->storage()->useOn(stream);
  return (*backend)->add(x.dtype(), sum.mutableData(), x.data(), y.data(),
                         x.elements(), stream);
}

Status addTensors(Tensor &sum, const Tensor &x, const Tensor &y) {
  if (x.dtype() != y.dtype() || x.device() != y.device() ||
      !std::equal(x.shape().begin(), x.shape().end(), y.shape().begin(),
                  y.shape().end()))
    return Status::usage("expected a gradient of " +
                         describe(x.dtype(), x.shape()) + " on '" +
                         runtime::toString(x.device()) + "' but got " +
                         describe(y.dtype(), y.shape()) + " on '" +
                         runtime::toString(y.device()) + "'");
  for (const Tensor *tensor : {&x, &y, &std::as_const(sum)})
    if (tensor->defined() && !tensor->isBacked())
      return tensor->checkElements();
  // Nothing is permuted where all is row-major, as it nearly always is.
  if (x.isDense() && y.isDense() && (!sum.defined() || sum.isDense())) {
    if (!sum.defined()) {
      Result<Tensor> made = emptyGradient(x.dtype(), x.shape(), x.device());
      if (!made)
        return std::move(made).status();
      sum = std::move(*made);
    }
    return addDense(sum, x, y);
  }
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
    Result<Tensor> made = emptyGradient(x.dtype(), x.shape(), x.device());
    if (made && order)
      made = made->view(x.shape(), x.strides());
    if (!made)
      return made.status();
    sum = std::move(*made);
  }
  return addDense(sum, *a, *b);
}

Status Sums::Given::note(Stream producer, Stream consumer) {
  version = gradient.tensor.version();
  backend = gradient.tensor.storage()->backend();
  if (!backend || producer == consumer) // null: Storage::backend
    return Status::success();
  gradient.tensor.storage()->useOn(consumer);
  return backend->record(made, producer);
}

Sums::Given &Sums::Given::operator=(Given &&other) noexcept {
  std::swap(made, other.made); // one of the two gives it back
  std::swap(backend, other.backend);
  gradient = std::move(other.gradient);
  version = other.version;
  input = other.input;
  return *this;
}

void Sums::Given::clear() {
  if (made)
    backend->releaseFence(made);
  made = nullptr;
  gradient = Value();
}

Status Sums::add(int &list, Given &&given, bool createGraph) {
  int last = none;
  for (int i = list; i != none; last = i, i = parts[size_t(i)].next)
    if (Part &part = parts[size_t(i)];
        part.input == given.input && !part.made && !given.made)
      return join(part, std::move(given.gradient), createGraph);
  int place = takePlace();
  (last == none ? list : parts[size_t(last)].next) = place;
  static_cast<Given &>(parts[size_t(place)]) = std::move(given);
  return Status::success();
}

static Status written(const Tensor &gradient, uint64_t version) {
  return Status::usage("a gradient " +
                       describe(gradient.dtype(), gradient.shape()) +
                       " was written after it was given: expected version " +
                       std::to_string(version) + " but got " +
                       std::to_string(gradient.version()));
}

/// Adds a gradient to a part, on the current stream.
Status Sums::join(Part &part, Value &&gradient, bool createGraph) {
  if (part.gradient.tensor.version() != part.version)
    return written(part.gradient.tensor, part.version);
  if (createGraph) {
    Result<Value> sum = ops::add(part.gradient, gradient);
    if (!sum)
      return std::move(sum).status();
    part.gradient = std::move(*sum);
  } else {
    // What came may be somebody else's: the first sum goes to a new tensor.
    Value before = part.gradient.tensor;
    if (!part.isOwn)
      part.gradient.tensor = Tensor();
    part.isOwn = true;
    if (Status status =
            addTensors(part.gradient.tensor, before.tensor, gradient.tensor);
        !status)
      return status;
    recycle(before);
    recycle(gradient);
  }
  part.version = part.gradient.tensor.version();
  return Status::success();
}

/// Adds a part to what other parts gave for the input. `isOwn`: that was made
/// here.
Status Sums::joinAtNode(Value &to, Part &part, bool isOwn, bool createGraph) {
  Part sum;
  sum.gradient = std::move(to);
  sum.version = sum.gradient.tensor.version();
  sum.isOwn = isOwn;
  Status status = join(sum, std::move(part.gradient), createGraph);
  to = std::move(sum.gradient);
  return status;
}

Status Sums::take(int &list, Gradients &gradients, const Node &node,
                  bool createGraph) {
  int ownInput = none; // whose sum was made here
  while (list != none) {
    Part &part = parts[size_t(list)];
    auto input = static_cast<size_t>(part.input);
    if (input >= gradients.size())
      return Status::usage("input " + std::to_string(part.input) + " of node " +
                           describe(node) +
                           " was cleared while the backward ran");
    Stream consumer = node.inputs()[input].stream;
    Status status;
    if (part.made)
      status = part.backend->waitFor(consumer, part.made);
    if (status && part.gradient.tensor.version() != part.version)
      status = written(part.gradient.tensor, part.version)
                   .in("input " + std::to_string(part.input) + " of node " +
                       describe(node));
    if (!status)
      return status;
    Value &to = gradients[input];
    if (!to.defined()) {
      to = std::move(part.gradient);
    } else {
      if (Status joined =
              joinAtNode(to, part, ownInput == part.input, createGraph);
          !joined)
        return joined;
      ownInput = part.input;
    }
    int next = part.next;
    drop(list);
    list = next;
  }
  return Status::success();
}

int Sums::takePlace() {
  if (firstFree == none) {
    parts.emplace_back();
    return static_cast<int>(parts.size()) - 1;
  }
  int place = firstFree;
  firstFree = parts[size_t(place)].next;
  parts[size_t(place)].next = none;
  return place;
}

void Sums::drop(int index) {
  Part &part = parts[size_t(index)];
  part.clear();
  part.isOwn = false;
  part.next = firstFree;
  firstFree = index;
}

void Sums::clear() {
  parts.clear();
  firstFree = none;
}

} // namespace tandem::graph
