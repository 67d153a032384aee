//===- Saved.cpp - a value that a node keeps for its backward -------------===//
#include "runtime/graph/Saved.h"
#include "runtime/graph/Ending.h"
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

SavedValues::Loan::~Loan() {
  if (!isHeld)
    return;
  // They end without the lock: what they hold may run code then.
  std::vector<std::shared_ptr<SavedValue>> freed;
  std::lock_guard lock(values.mutex);
  if (isTaken)
    values.isUsed = false;
  if (--values.running == 0 && values.isReleased)
    freed.swap(values.kept);
}

Status SavedValues::Loan::begin(const Node &of, bool retain) {
  std::lock_guard lock(values.mutex);
  if (values.isUsed)
    return used(of);
  if (!retain)
    values.isUsed = isTaken = !values.kept.empty();
  ++values.running;
  isHeld = true;
  return Status::success();
}

SavedValues::~SavedValues() {
  Ending ending;
  for (std::shared_ptr<SavedValue> &value : kept)
    ending.take(std::move(value));
}

void SavedValues::release() {
  std::vector<std::shared_ptr<SavedValue>> freed;
  std::lock_guard lock(mutex);
  isUsed |= !kept.empty();
  isReleased = true;
  if (running == 0)
    freed.swap(kept);
}

Status SavedValues::used(const Node &node) {
  return Status::usage("the saved values of node " + describe(node) +
                       " were freed by an earlier backward; the first must ask "
                       "for retain_graph if there is a second");
}

Result<Value> SavedValues::use(Node &node, size_t index) {
  std::shared_ptr<SavedValue> value; // no copy: it would allocate
  {
    std::lock_guard lock(mutex);
    if (kept.empty() && isUsed)
      return used(node);
    if (index >= kept.size())
      return Status::usage(
          "node " + describe(node) + ": expected a saved value below " +
          std::to_string(kept.size()) + " but got " + std::to_string(index));
    value = kept[index];
  }
  return value->use(node);
}

Result<std::vector<Value>> SavedValues::useAll(Node &node) {
  size_t count = 0;
  {
    std::lock_guard lock(mutex);
    count = kept.size();
  }
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    Result<Value> value = use(node, i);
    if (!value)
      return std::move(value).status();
    values.push_back(std::move(*value));
  }
  return values;
}

int64_t SavedValues::bytes() const {
  std::lock_guard lock(mutex);
  int64_t bytes = 0;
  for (const auto &value : kept)
    bytes += value->bytes();
  return bytes;
}

Status SavedValues::swap(Node &node, std::vector<Value> &others) {
  std::lock_guard lock(mutex);
  if (others.size() != kept.size())
    return Status::usage(
        "node " + describe(node) + ": expected " + std::to_string(kept.size()) +
        " saved values but got " + std::to_string(others.size()));
  for (size_t i = 0; i < kept.size(); ++i) {
    Status status = kept[i]->swap(node, others[i]);
    if (status)
      continue;
    while (i-- > 0)
      (void)kept[i]->swap(node, others[i]); // back: they fitted
    return status;
  }
  return Status::success();
}

} // namespace tandem::graph
