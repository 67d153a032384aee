//===- CheckCall.cpp - what a call must be given --------------------------===//
//
// Types, devices, versions and grad mode: every problem is collected, so that
// one message has them all. What shares memory with what is checked in
// CheckSharing.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

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

class Check {
public:
  Check(const Invocation &call, const MatchedCall &matched, Problems &problems)
      : call(call), program(call.program), plan(call.plan), takes(call.takes),
        matched(matched), problems(problems) {}

  void context();
  void argument(size_t index);
  void gradMode();
  void destinations();

private:
  void freed(size_t index);
  void destination(int entry, artifact::DType dtype,
                   const std::vector<int64_t> &shape);
  void problem(const std::string &text) { problems.add(text); }
  std::string name(size_t argument) const {
    return argumentName(plan, argument);
  }

  const Invocation &call;
  const Program &program;
  const artifact::Program &plan;
  const SavedValues *takes;
  const MatchedCall &matched;
  Problems &problems;
};

/// Checks that nobody wrote what the backward is about to read. What it takes
/// as it finds it has no version.
void Check::context() {
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const BoundArgument &argument = program.arguments[a];
    const Slot &slot = plan.arguments[a];
    const Tensor *now = nullptr;
    uint64_t expected = 0;
    bool isPacked = false;
    const Slot *saver = nullptr;
    if (argument.saved >= 0) {
      const SavedResult &saved = takes->results[argument.saved];
      saver = &program.source->plan->results[argument.saved];
      isPacked = saved.isPacked;
      expected = saved.version;
      if (saved.shared.defined())
        now = &saved.shared;
    } else if (argument.found >= 0) {
      const KeptValue &kept = takes->kept[argument.found];
      isPacked = kept.isPacked && !slot.asFound;
      expected = kept.version;
      now = &kept.given;
    }
    if (!now || isPacked)
      continue;
    bool isChecked =
        !slot.asFound && !slot.unchecked && !(saver && saver->unchecked);
    if (isChecked && now->version() != expected) {
      const std::string &where =
          slot.where.empty() && saver ? saver->where : slot.where;
      problem(name(a) + ", which " +
              (where.empty() ? "it reads" : where + " saved") +
              ", was written after the forward: expected version " +
              std::to_string(expected) + " but got " +
              std::to_string(now->version()));
    } else if (!now->isBacked()) {
      problem(name(a) + ": " + noElements(*now));
    }
  }
}

void Check::argument(size_t index) {
  const Slot &slot = plan.arguments[index];
  const BoundArgument &argument = program.arguments[index];
  if (int v = argument.variable; v >= 0) {
    if (!call.core.variables[v].isSet)
      problem(name(index) + " has no value: it has no initial one and "
                            "was not set");
    return;
  }
  const Tensor *tensor = matched.given[index];
  if (!tensor || !argument.isCallers || !matched.isDefined[index])
    return;
  std::string expected;
  if (!tensor->defined())
    expected = "but got an undefined tensor";
  else if (!hasType(*tensor, slot.dtype, slot.shape))
    expected = "but got " + describe(tensor->dtype(), tensor->shape());
  if (!expected.empty())
    problem(name(index) + ": expected " + describe(slot.dtype, slot.shape) +
            " " + expected);
  if (!call.place.reaches(*tensor))
    problem(name(index) + ": expected device " + call.place.names() +
            " but got '" + toString(tensor->device()) + "'");
  if (!expected.empty() || !call.place.reaches(*tensor))
    return;
  if (slot.freed || slot.resize)
    freed(index);
  if (!slot.freed && !tensor->isBacked())
    problem(name(index) + ": " + noElements(*tensor));
  // An overwritten cotangent is no longer what its gradient was.
  if (call.mode.createGraph && argument.isUpdated &&
      slot.role == Role::Cotangent && tensor->requiresGrad())
    problem("create_graph was asked for, but " +
            writerOf(plan, std::string(artifact::cotangentOf) + slot.name) +
            " writes " + name(index) + ", which requires grad");
}

/// An input whose storage has no bytes at the call, or another size after it.
void Check::freed(size_t index) {
  const Slot &slot = plan.arguments[index];
  const Tensor &tensor = *matched.given[index];
  if (slot.freed && tensor.elements() && tensor.isBacked())
    problem(name(index) + ": expected freed storage but got " +
            std::to_string(tensor.storage()->bytes()) + " bytes");
  if (!slot.resize)
    return;
  if (Status status = tensor.storage()->checkResizable(); !status)
    problem(name(index) +
            ", whose storage the program resizes: " + status.message());
  if (*slot.resize > 0 && tensor.storageElements() > *slot.resize)
    problem(name(index) + ": expected a view of the " +
            std::to_string(*slot.resize) +
            " elements of the resized storage but got one that needs " +
            std::to_string(tensor.storageElements()));
}

/// With a context: leaves are not written visibly, and gradients that the
/// caller expects must exist.
void Check::gradMode() {
  if (!call.isGradMode() || takes)
    return;
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const Tensor *tensor = matched.given[a];
    if (tensor && tensor->requiresGrad() &&
        !program.arguments[a].value->requiresGrad)
      problem(name(a) + " requires grad, but the artifact was compiled "
                        "without a gradient of it");
  }
  for (size_t r = 0; r < plan.results.size(); ++r) {
    const Slot &slot = plan.results[r];
    const BoundResult &result = program.results[r];
    if (const Tensor *wanted = matched.wanted[r]; wanted && wanted->defined() &&
                                                  wanted->requiresGrad() &&
                                                  wanted->isLeaf())
      problem(slotName(slot, r) +
              ": expected a tensor to write to that is no leaf "
              "that requires grad");
    if (slot.role != Role::Update || !slot.visible || result.variable >= 0)
      continue;
    const Tensor *tensor = matched.tensors[result.argument];
    if (!tensor)
      continue;
    std::string write = slot.where.empty() ? "the program" : slot.where;
    if (tensor->requiresGrad() && tensor->isLeaf())
      problem(name(result.argument) + " is a leaf that requires grad, and " +
              write + " writes it visibly");
    if (tensor->partOf())
      problem(name(result.argument) + " is a piece that '" + tensor->partOf() +
              "' made together with others, and " + write +
              " writes it visibly; detach it first");
    if (result.isDifferentiable && !matched.handles[result.argument])
      problem(name(result.argument) +
              ": expected a tensor that may be changed, since it requires grad "
              "afterwards");
  }
}

void Check::destinations() {
  size_t arguments = plan.arguments.size(), results = plan.results.size();
  for (size_t r = 0; r < results; ++r)
    destination(static_cast<int>(arguments + r), plan.results[r].dtype,
                plan.results[r].shape);
  for (size_t i = 0; i < plan.aliases.size(); ++i)
    destination(static_cast<int>(arguments + results + i),
                plan.aliases[i].dtype, plan.aliases[i].shape);
}

void Check::destination(int entry, artifact::DType dtype,
                        const std::vector<int64_t> &shape) {
  const Tensor *tensor = matched.entry(entry);
  if (!tensor || !tensor->defined())
    return;
  if (!hasType(*tensor, dtype, shape))
    problem(entryName(plan, entry) + ": expected " + describe(dtype, shape) +
            " but got " + describe(tensor->dtype(), tensor->shape()));
  else if (!call.place.reaches(*tensor))
    problem(entryName(plan, entry) + ": expected device " + call.place.names() +
            " but got '" + toString(tensor->device()) + "'");
  else if (!tensor->isBacked())
    problem(entryName(plan, entry) + ": " + noElements(*tensor));
  else if (overlapsItself(*tensor))
    problem(entryName(plan, entry) +
            ": expected elements that share no memory but got strides " +
            toString(tensor->strides()));
}

} // namespace

void check(const Invocation &call, const MatchedCall &matched,
           Problems &problems) {
  Check step(call, matched, problems);
  if (call.takes)
    step.context();
  for (size_t a = 0; a < call.plan.arguments.size(); ++a)
    step.argument(a);
  step.gradMode();
  step.destinations();
}

void checkCapture(const Invocation &call, const MatchedCall &matched,
                  bool isPrepared, Problems &problems) {
  const DeviceMemory &place = call.place;
  if (!isPrepared) {
    place.backend().breakCapture(call.stream);
    problems.add("what 'prepare' computes of parameters and states is not "
                 "there or not of their present values: run '" +
                 call.plan.name + "' once before its stream is captured");
  }
  auto look = [&](const Tensor *tensor, int entry) {
    if (!tensor || !tensor->defined() || tensor->device() == place.device())
      return;
    place.backend().breakCapture(call.stream);
    problems.add(entryName(call.plan, entry) + ": expected device '" +
                 toString(place.device()) +
                 "' while its stream is captured but got '" +
                 toString(tensor->device()) + "'");
  };
  int entry = 0;
  for (const Tensor *given : matched.given)
    look(given, entry++);
  for (const Tensor *wanted : matched.wanted)
    look(wanted, entry++);
  for (const Tensor *wanted : matched.aliases)
    look(wanted, entry++);
}

} // namespace tandem::runtime
