//===- GraphHandles.cpp - the history of tensor handles -------------------===//
//
// What gradients of a handle go to, and where they are.
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api/GraphCApi.h"

#include <mutex>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph;

namespace tandem::capi {

Result<Edge> edgeOf(tdm_tensor &tensor) {
  // Threads may use a leaf for the first time together.
  static std::mutex mutex;
  bool isPlace = tensor.isPlace;
  if (!isPlace && (!tensor.tensor.defined() || !tensor.tensor.requiresGrad()))
    return Edge();
  std::lock_guard lock(mutex);
  const Edge &known = tensor.edge;
  if (known && size_t(known.input) >= known.node->inputs().size())
    return Status::usage("input " + std::to_string(known.input) + " of node " +
                         describe(*known.node) + " was cleared");
  if (isPlace || known)
    return known;
  if (!tensor.tensor.isLeaf())
    return Status::usage("the tensor was made outside of the graph, by "
                         "tdm_forward or tdm_backward_graph: its history is a "
                         "context; detach it, or use tdm_graph_forward");
  Result<Value> leaf = Leaf::make("leaf", tensor.tensor);
  if (!leaf)
    return std::move(leaf).status();
  tensor.edge = leaf->edge;
  return tensor.edge;
}

Result<Value> valueOf(tdm_tensor &tensor) {
  Result<Edge> edge = edgeOf(tensor);
  if (!edge)
    return std::move(edge).status();
  return Value(tensor.tensor, std::move(*edge));
}

void show(tdm_tensor &handle, Value value) {
  handle.tensor = std::move(value.tensor);
  handle.edge = std::move(value.edge);
  handle.retained = nullptr;
  handle.isPlace = false;
  if (!handle.tensor.defined())
    return;
  bool isLeaf = handle.edge && handle.edge.node->isLeaf();
  handle.tensor.setMade(handle.edge && !isLeaf, handle.tensor.partOf());
  if (isLeaf) // of floating point numbers
    (void)handle.tensor.setRequiresGrad(true);
}

Value take(tdm_tensor &handle) {
  Value value(std::move(handle.tensor));
  if (value.defined() && value.tensor.requiresGrad())
    value.edge = std::move(handle.edge);
  handle.tensor = Tensor();
  handle.edge = {};
  return value;
}

Status shareLeaf(const tdm_tensor &tensor) {
  if (tensor.isPlace || !tensor.tensor.defined() ||
      !tensor.tensor.requiresGrad() || !tensor.tensor.isLeaf())
    return Status::success();
  return edgeOf(const_cast<tdm_tensor &>(tensor)).status();
}

Status checkHandles(const char *what, tdm_tensor *const *list, size_t count) {
  if (count && !list)
    return null(what);
  for (size_t i = 0; i < count; ++i)
    if (!list[i])
      return Status::usage(std::string(what) + " number " + std::to_string(i) +
                           ": expected a tensor but got null");
  return Status::success();
}

Result<std::vector<Value>> valuesOf(const char *what, tdm_tensor *const *list,
                                    size_t count) {
  if (Status status = checkHandles(what, list, count); !status)
    return status;
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    Result<Value> value = valueOf(*list[i]);
    if (!value)
      return std::move(value).status().in(std::string(what) + " number " +
                                          std::to_string(i));
    values.push_back(std::move(*value));
  }
  return values;
}

} // namespace tandem::capi

tdm_status tdm_fail(tdm_status status, const char *message) {
  if (message)
    lastError = message;
  return status;
}

tdm_status tdm_tensor_assign(tdm_tensor *tensor, const tdm_tensor *other) {
  return call([&]() -> Status {
    if (!tensor || !other)
      return null("tensor");
    if (Status status = shareLeaf(*other); !status)
      return status;
    *tensor = *other; // with its history
    return Status::success();
  });
}

tdm_status tdm_tensor_grad(tdm_tensor *tensor, tdm_tensor *gradient) {
  return call([&]() -> Status {
    if (!tensor || !gradient)
      return null(tensor ? "place for the gradient" : "tensor");
    Value found;
    if (tensor->retained)
      found = tensor->retained->get();
    else if (tensor->edge && tensor->edge.node->isLeaf())
      found = static_cast<Leaf &>(*tensor->edge.node).value();
    show(*gradient, std::move(found));
    return Status::success();
  });
}

tdm_status tdm_tensor_set_grad(tdm_tensor *tensor, const tdm_tensor *gradient) {
  return call([&]() -> Status {
    if (!tensor)
      return null("tensor");
    Result<Edge> edge = edgeOf(*tensor);
    if (!edge)
      return std::move(edge).status();
    bool isLeaf = *edge && edge->node->isLeaf();
    if (!isLeaf && !tensor->retained)
      return Status::usage("the tensor keeps no gradient: expected a leaf that "
                           "requires grad, or tdm_tensor_retain_grad before");
    Value value;
    if (gradient && gradient->tensor.defined()) {
      if (Status status = shareLeaf(*gradient); !status)
        return status;
      value = Value(gradient->tensor, gradient->edge);
      const InputInfo &info = edge->node->inputs()[size_t(edge->input)];
      if (value.tensor.dtype() != info.dtype ||
          value.tensor.device() != info.device ||
          !std::ranges::equal(value.tensor.shape(), info.shape))
        return Status::usage(
            "expected a gradient " + describe(info.dtype, info.shape) +
            " on '" + runtime::toString(info.device) + "' but got " +
            describe(value.tensor.dtype(), value.tensor.shape()) + " on '" +
            runtime::toString(value.tensor.device()) + "'");
    }
    if (isLeaf)
      static_cast<Leaf &>(*edge->node).setValue(std::move(value));
    else
      tensor->retained->set(std::move(value));
    return Status::success();
  });
}

/// The edge of a handle that must require grad.
static Result<Edge> requiredEdge(tdm_tensor *tensor) {
  if (!tensor)
    return null("tensor");
  Result<Edge> edge = edgeOf(*tensor);
  if (edge && !*edge)
    return Status::usage("the tensor does not require grad");
  return edge;
}

tdm_status tdm_tensor_retain_grad(tdm_tensor *tensor) {
  return call([&]() -> Status {
    Result<Edge> edge = requiredEdge(tensor);
    if (edge && !edge->node->isLeaf())
      tensor->retained = retain(*edge);
    return std::move(edge).status();
  });
}

tdm_status tdm_tensor_node(tdm_tensor *tensor, tdm_node **node, int *input) {
  return call([&]() -> Status {
    if (!node)
      return null("place for the node");
    Result<Edge> edge = requiredEdge(tensor);
    if (!edge)
      return std::move(edge).status();
    *node = new tdm_node{edge->node};
    if (input)
      *input = edge->input;
    return Status::success();
  });
}

tdm_status tdm_tensor_from_edge(const tdm_node *node, int input,
                                tdm_tensor *tensor) {
  return call([&]() -> Status {
    if (!node || !tensor)
      return null(node ? "tensor" : "node");
    if (input < 0 || size_t(input) >= node->node->inputs().size())
      return Status::usage("node " + describe(*node->node) +
                           ": expected an input below " +
                           std::to_string(node->node->inputs().size()) +
                           " but got " + std::to_string(input));
    *tensor = tdm_tensor();
    tensor->edge = {node->node, input};
    tensor->isPlace = true;
    return Status::success();
  });
}

/// Adds a hook at the handle's node; `add` gives its key. The caller of this
/// owns the hook's user, who is released if it fails.
template <typename Add>
static tdm_status addHook(tdm_tensor *tensor, bool hasCall, tdm_hook **hook,
                          Add add) {
  return call([&]() -> Status {
    if (!hasCall)
      return null("hook");
    Result<Edge> edge = requiredEdge(tensor);
    if (!edge)
      return std::move(edge).status();
    auto made = std::make_unique<tdm_hook>(tdm_hook{edge->node, 0});
    Result<uint64_t> key = add(*edge);
    if (!key)
      return std::move(key).status();
    made->key = *key;
    if (hook)
      *hook = made.release();
    return Status::success();
  });
}

tdm_status tdm_tensor_add_hook(tdm_tensor *tensor, tdm_tensor_hook hook,
                               void *user, void (*release)(void *),
                               tdm_hook **handle) {
  auto kept = ownedUser(user, release);
  return addHook(tensor, hook, handle, [&](const Edge &edge) {
    return Result<uint64_t>(addTensorHook(edge, [hook, kept](Value &gradient) {
      tdm_tensor shown;
      show(shown, std::move(gradient));
      Status status = callUser("a tensor hook", nullptr,
                               [&] { return hook(kept.get(), &shown); });
      gradient = take(shown);
      return status;
    }));
  });
}

tdm_status tdm_tensor_add_accumulated_hook(tdm_tensor *tensor,
                                           tdm_tensor_hook hook, void *user,
                                           void (*release)(void *),
                                           tdm_hook **handle) {
  auto kept = ownedUser(user, release);
  return addHook(tensor, hook, handle, [&](const Edge &edge) {
    return addAccumulatedHook(*edge.node, [hook, kept](Leaf &leaf) {
      tdm_tensor shown;
      show(shown, leaf.value());
      return callUser("a hook after accumulation", nullptr,
                      [&] { return hook(kept.get(), &shown); });
    });
  });
}
