//===- CheckCall.cpp - what a call must be given --------------------------===//
//
// Names, types, devices, versions and grad mode: every problem is collected, so
// that one message has them all. What shares memory with what is checked in
// CheckSharing.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

#include <algorithm>

namespace tandem::runtime {

using artifact::Role;
using artifact::Slot;

namespace {

bool hasType(const Tensor &tensor, artifact::DType dtype,
             const std::vector<int64_t> &shape) {
  return tensor.dtype() == dtype &&
         std::equal(tensor.shape().begin(), tensor.shape().end(), shape.begin(),
                    shape.end());
}

std::string noElements(const Tensor &tensor) {
  return "expected a tensor with elements but its storage has " +
         std::to_string(tensor.storage()->bytes()) + " bytes";
}

} // namespace

/// Checks that nobody wrote what the backward is about to read. What it takes
/// as it finds it has no version.
void Call::checkContext() {
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const BoundArgument &argument = bound.arguments[a];
    const Slot &slot = program.arguments[a];
    const Tensor *now = nullptr;
    uint64_t expected = 0;
    bool isPacked = false;
    const Slot *saver = nullptr;
    if (argument.saved >= 0) {
      const SavedResult &saved = takes->results[argument.saved];
      saver = &bound.source->program->results[argument.saved];
      isPacked = saved.isPacked;
      expected = saved.version;
      if (saved.shared.defined())
        now = &saved.shared;
    } else if (argument.found >= 0) {
      const KeptValue &kept = takes->kept[argument.found];
      isPacked = kept.isPacked && !slot.asFound;
      expected = kept.version;
      now = &kept.given;
      if (argument.variable < 0 && !isPacked)
        bound.given[a] = slot.asFound ? &kept.given : &kept.value;
    }
    if (!now || isPacked)
      continue;
    bool isChecked =
        !slot.asFound && !slot.unchecked && !(saver && saver->unchecked);
    if (isChecked && now->version() != expected) {
      const std::string &where =
          slot.where.empty() && saver ? saver->where : slot.where;
      problem(name(slot, a) + ", which " +
              (where.empty() ? "it reads" : where + " saved") +
              ", was written after the forward: expected version " +
              std::to_string(expected) + " but got " +
              std::to_string(now->version()));
    } else if (!now->isBacked()) {
      problem(name(slot, a) + ": " + noElements(*now));
    }
  }
}

void Call::checkArgument(size_t index) {
  const Slot &slot = program.arguments[index];
  const BoundArgument &argument = bound.arguments[index];
  if (int v = argument.variable; v >= 0) {
    if (!core.variables[v].isSet)
      problem(name(slot, index) + " has no value: it has no initial one and "
                                  "was not set");
    return;
  }
  const Tensor *tensor = bound.given[index];
  if (!tensor || !argument.isCallers || !bound.isDefined[index])
    return;
  std::string expected;
  if (!tensor->defined())
    expected = "but got an undefined tensor";
  else if (!hasType(*tensor, slot.dtype, slot.shape))
    expected = "but got " + describe(tensor->dtype(), tensor->shape());
  if (!expected.empty())
    problem(name(slot, index) + ": expected " +
            describe(slot.dtype, slot.shape) + " " + expected);
  if (!place.reaches(*tensor))
    problem(name(slot, index) + ": expected device " + place.names() +
            " but got '" + toString(tensor->device()) + "'");
  if (!expected.empty() || !place.reaches(*tensor))
    return;
  if (slot.freed || slot.resize)
    checkFreed(index);
  if (!slot.freed && !tensor->isBacked())
    problem(name(slot, index) + ": " + noElements(*tensor));
  // An overwritten cotangent is no longer what its gradient was.
  if (mode.createGraph && argument.isUpdated && slot.role == Role::Cotangent &&
      tensor->requiresGrad())
    problem("create_graph was asked for, but " +
            writerOf(std::string(artifact::cotangentOf) + slot.name) +
            " writes " + name(slot, index) + ", which requires grad");
}

/// An input whose storage has no bytes at the call, or another size after it.
void Call::checkFreed(size_t index) {
  const Slot &slot = program.arguments[index];
  const Tensor &tensor = *bound.given[index];
  if (slot.freed && tensor.elements() && tensor.isBacked())
    problem(name(slot, index) + ": expected freed storage but got " +
            std::to_string(tensor.storage()->bytes()) + " bytes");
  if (!slot.resize)
    return;
  if (Status status = tensor.storage()->checkResizable(); !status)
    problem(name(slot, index) +
            ", whose storage the program resizes: " + status.message());
  if (*slot.resize > 0 && tensor.storageElements() > *slot.resize)
    problem(name(slot, index) + ": expected a view of the " +
            std::to_string(*slot.resize) +
            " elements of the resized storage but got one that needs " +
            std::to_string(tensor.storageElements()));
}

/// With a context: leaves are not written visibly, and gradients that the
/// caller expects must exist.
void Call::checkGradMode() {
  if (!isGradMode() || takes)
    return;
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const Tensor *tensor = bound.given[a];
    if (tensor && tensor->requiresGrad() &&
        !bound.arguments[a].value->requiresGrad)
      problem(argumentName(a) + " requires grad, but the artifact was compiled "
                                "without a gradient of it");
  }
  for (size_t r = 0; r < program.results.size(); ++r) {
    const Slot &slot = program.results[r];
    const BoundResult &result = bound.results[r];
    if (const Tensor *wanted = bound.wanted[r]; wanted && wanted->defined() &&
                                                wanted->requiresGrad() &&
                                                wanted->isLeaf())
      problem(name(slot, r) + ": expected a tensor to write to that is no leaf "
                              "that requires grad");
    if (slot.role != Role::Update || !slot.visible || result.variable >= 0)
      continue;
    const Tensor *tensor = tensorOf(result.argument);
    if (!tensor)
      continue;
    std::string write = slot.where.empty() ? "the program" : slot.where;
    if (tensor->requiresGrad() && tensor->isLeaf())
      problem(argumentName(result.argument) +
              " is a leaf that requires grad, and " + write +
              " writes it visibly");
    if (tensor->partOf())
      problem(argumentName(result.argument) + " is a piece that '" +
              tensor->partOf() + "' made together with others, and " + write +
              " writes it visibly; detach it first");
    if (result.isDifferentiable && !bound.handles[result.argument])
      problem(argumentName(result.argument) +
              ": expected a tensor that may be changed, since it requires grad "
              "afterwards");
  }
}

void Call::checkDestinations() {
  size_t arguments = program.arguments.size(), results = program.results.size();
  for (size_t r = 0; r < results; ++r)
    checkDestination(static_cast<int>(arguments + r), program.results[r].dtype,
                     program.results[r].shape);
  for (size_t i = 0; i < program.aliases.size(); ++i)
    checkDestination(static_cast<int>(arguments + results + i),
                     program.aliases[i].dtype, program.aliases[i].shape);
}

void Call::checkDestination(int entry, artifact::DType dtype,
                            const std::vector<int64_t> &shape) {
  const Tensor *tensor = entryTensor(entry);
  if (!tensor || !tensor->defined())
    return;
  if (!hasType(*tensor, dtype, shape))
    problem(entryName(entry) + ": expected " + describe(dtype, shape) +
            " but got " + describe(tensor->dtype(), tensor->shape()));
  else if (!place.reaches(*tensor))
    problem(entryName(entry) + ": expected device " + place.names() +
            " but got '" + toString(tensor->device()) + "'");
  else if (!tensor->isBacked())
    problem(entryName(entry) + ": " + noElements(*tensor));
  else if (overlapsItself(*tensor))
    problem(entryName(entry) +
            ": expected elements that share no memory but got strides " +
            toString(tensor->strides()));
}

} // namespace tandem::runtime
