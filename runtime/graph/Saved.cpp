//===- Saved.cpp - a value that a node keeps for its backward -------------===//
#include "runtime/graph/Saved.h"
#include "runtime/graph/Modes.h"

#include <algorithm>

namespace tandem::graph {

Result<SavedValue> SavedValue::make(std::string name, const Value &value,
                                    int input) {
  SavedValue made;
  made.name = std::move(name);
  made.input = input;
  const Tensor &tensor = value.tensor;
  if (!tensor.defined())
    return made;
  made.dtype = tensor.dtype();
  made.shape.assign(tensor.shape().begin(), tensor.shape().end());
  made.version = tensor.version();
  made.hooks = modes().savedHooks;
  made.value.edge = input < 0 ? value.edge : Edge();
  if (!made.hooks) {
    made.value.tensor = tensor;
    return made;
  }
  Result<std::shared_ptr<void>> packed = made.hooks->pack(made.name, tensor);
  if (!packed)
    return std::move(packed).status();
  if (tensor.version() != made.version)
    return Status::usage("the pack hook of '" + made.name +
                         "' wrote the value that it was given");
  made.packed = std::move(*packed);
  return made;
}

Result<Value> SavedValue::use(Node &node) const {
  Value used = value;
  if (hooks) {
    Result<Tensor> unpacked = hooks->unpack(name, packed);
    if (!unpacked)
      return std::move(unpacked).status();
    used.tensor = std::move(*unpacked);
    bool isRight = used.defined() && used.tensor.dtype() == dtype &&
                   std::ranges::equal(used.tensor.shape(), shape);
    if (!isRight)
      return Status::usage(
          "the unpack hook of '" + name + "': expected " +
          describe(dtype, shape) + " but got " +
          (used.defined() ? describe(used.tensor.dtype(), used.tensor.shape())
                          : "an empty handle"));
  } else if (used.defined() && used.tensor.version() != version) {
    return Status::usage("'" + name + "' (" + describe(dtype, shape) +
                         "), which node " + describe(node) +
                         " saved, was written since: expected version " +
                         std::to_string(version) + " but got " +
                         std::to_string(used.tensor.version()));
  }
  if (input >= 0)
    used.edge = {node.shared_from_this(), input};
  return used;
}

int64_t SavedValue::bytes() const {
  return value.defined() ? value.tensor.bytes() : 0;
}

Status SavedValue::swap(Node &node, Value &other) {
  if (hooks)
    return Status::unsupported("'" + name + "' of node " + describe(node) +
                               " is packed: it cannot be exchanged");
  if (other.defined() != value.defined() ||
      (other.defined() && (other.tensor.dtype() != dtype ||
                           !std::ranges::equal(other.tensor.shape(), shape))))
    return Status::usage(
        "'" + name + "' of node " + describe(node) + ": expected " +
        describe(dtype, shape) + " but got " +
        (other.defined() ? describe(other.tensor.dtype(), other.tensor.shape())
                         : "an undefined value"));
  std::swap(value, other);
  version = value.tensor.version();
  return Status::success();
}

Status swapAll(Node &node, std::vector<SavedValue> &saved,
               std::vector<Value> &values) {
  if (values.size() != saved.size())
    return Status::usage("node " + describe(node) + ": expected " +
                         std::to_string(saved.size()) +
                         " saved values but got " +
                         std::to_string(values.size()));
  for (size_t i = 0; i < saved.size(); ++i) {
    Status status = saved[i].swap(node, values[i]);
    if (status)
      continue;
    while (i-- > 0)
      (void)saved[i].swap(node, values[i]); // back: they fitted
    return status;
  }
  return Status::success();
}

} // namespace tandem::graph
