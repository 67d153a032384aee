//===- Hooks.cpp - what hooks pack and give back --------------------------===//
//
// A forward's hooks get each saved value after it has run, and its backward's
// give it back before it runs. They are the caller's: what they give is checked
// like an argument, and their errors are handed on as they are.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>
#include <exception>

namespace tandem::runtime {

using artifact::Slot;

namespace {

class Unpacking {
public:
  Unpacking(const Invocation &call, std::span<Tensor> staged,
            PlacedCall &placed)
      : call(call), program(call.program), plan(call.plan), gives(call.gives),
        takes(call.takes), staged(staged), placed(placed) {}

  Status run();

private:
  Status unpack(size_t index, const PackedValue &value);
  Status unpackOnHost(size_t index);

  const Invocation &call;
  const Program &program;
  const artifact::Program &plan;
  SavedValues *gives;
  const SavedValues *takes;
  std::span<Tensor> staged;
  PlacedCall &placed;
};

Status Unpacking::run() {
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const BoundArgument &argument = program.arguments[a];
    const PackedValue *value = nullptr;
    if (argument.saved >= 0)
      value = &takes->results[argument.saved];
    else if (argument.found >= 0 && !plan.arguments[a].asFound)
      value = &takes->kept[argument.found];
    if (value && value->isPacked)
      if (Status status = unpack(a, *value); !status)
        return status;
  }
  return Status::success();
}

/// Calls the hook, and makes what it gives the argument.
Status Unpacking::unpack(size_t index, const PackedValue &value) {
  const Slot &slot = plan.arguments[index];
  const BoundArgument &argument = program.arguments[index];
  Result<Tensor> made = Status::success();
  try {
    made = takes->hooks->unpack(slot.name, value.packed);
  } catch (const std::exception &error) {
    return Status::failed(error.what());
  }
  if (!made)
    return std::move(made).status();
  auto where = [&] {
    return "cannot run '" + plan.name + "': " + argumentName(plan, index);
  };
  if (!made->defined() || made->dtype() != slot.dtype ||
      !std::equal(made->shape().begin(), made->shape().end(),
                  slot.shape.begin(), slot.shape.end()))
    return Status::usage("expected " + describe(slot.dtype, slot.shape) +
                         " from the unpack hook but got " +
                         (made->defined()
                              ? describe(made->dtype(), made->shape())
                              : "an undefined tensor"))
        .in(where());
  if (!call.place.reaches(*made) || !made->isBacked())
    return Status::usage("expected a tensor on device " + call.place.names() +
                         " with elements from the unpack hook")
        .in(where());
  Tensor &tensor = placed.unpacked[index];
  tensor = std::move(*made);
  if (slot.onHost)
    return unpackOnHost(index);
  // What the hook gave is the caller's: it is never donated.
  if (!call.place.isUsable(tensor) || argument.isDonated) {
    Tensor &copy = staged[index];
    if (Status status = ensure(copy, slot, call.core); !status)
      return status;
    if (Status status = copy.copyFrom(tensor); !status)
      return status;
    placed.argumentData[index] = const_cast<void *>(copy.data());
  } else {
    placed.argumentData[index] = const_cast<void *>(tensor.data());
  }
  if (gives && argument.kept >= 0) {
    KeptValue &kept = gives->kept[argument.kept];
    kept.given = kept.value = tensor;
    kept.version = tensor.version();
  }
  return Status::success();
}

/// Brings what a hook gave to memory that the device's copies read.
Status Unpacking::unpackOnHost(size_t index) {
  const Slot &slot = plan.arguments[index];
  const Tensor &made = placed.unpacked[index];
  int number = program.arguments[index].kept;
  KeptValue *kept = gives && number >= 0 ? &gives->kept[number] : nullptr;
  Tensor &copy = kept && !gives->hooks ? kept->own : staged[index];
  if (Status status = ensure(copy, slot, call.core); !status)
    return status;
  if (Status status = call.core.hostMemory.await(copy, /*isWrite=*/true);
      !status)
    return status;
  if (Status status = copy.copyFrom(made); !status)
    return status;
  placed.argumentData[index] = const_cast<void *>(copy.data());
  if (kept) {
    kept->given = made;
    kept->value = copy;
    kept->version = made.version();
  }
  return Status::success();
}

Status packOne(const SavedHooks &hooks, const Slot &slot, const Tensor &value,
               PackedValue &to) {
  uint64_t version = value.version();
  Result<std::shared_ptr<void>> packed = Status::success();
  try {
    packed = hooks.pack(slot.name, value);
  } catch (const std::exception &error) {
    packed = Status::failed(error.what());
  }
  if (!packed)
    return std::move(packed).status();
  if (value.version() != version)
    return Status::usage(
        "the pack hook of '" + slot.name + "'" +
        (slot.where.empty() ? "" : ", saved by " + slot.where) +
        " wrote the value: expected version " + std::to_string(version) +
        " but got " + std::to_string(value.version()));
  to.packed = std::move(*packed);
  to.isPacked = true;
  return Status::success();
}

/// Memory that a hook holds on to is not used again.
void letGo(Tensor &own) {
  if (own.defined() && own.storage().use_count() > 1)
    own = Tensor();
}

} // namespace

Status unpack(const Invocation &call, std::span<Tensor> staged,
              PlacedCall &placed) {
  return Unpacking(call, staged, placed).run();
}

Status pack(const Invocation &call, const PlacedCall &placed,
            Workspace &workspace) {
  const artifact::Program &plan = call.plan;
  SavedValues &gives = *call.gives;
  for (size_t r = 0; r < plan.results.size(); ++r) {
    if (plan.results[r].role != artifact::Role::Saved)
      continue;
    SavedResult &saved = gives.results[r];
    Tensor value =
        saved.shared.defined() ? saved.shared.detach() : *placed.homes[r];
    if (plan.results[r].onHost)
      if (Status status = call.core.hostMemory.await(value, /*isWrite=*/false);
          !status)
        return status;
    if (Status status = packOne(*gives.hooks, plan.results[r], value, saved);
        !status)
      return status;
    saved.shared = Tensor();
    value = Tensor();
    int home = call.program.results[r].home;
    letGo(workspace.internal[home < 0 ? r : home]);
  }
  for (size_t k = 0; k < call.program.kept.size(); ++k) {
    const BoundKept &about = call.program.kept[k];
    if (!about.isRead)
      continue;
    KeptValue &kept = gives.kept[k];
    Tensor value = kept.value.detach();
    if (Status status = packOne(*gives.hooks, *about.reader, value, kept);
        !status)
      return status;
    value = kept.value = Tensor();
    if (!about.isFound)
      kept.given = Tensor();
    if (about.argument >= 0)
      letGo(workspace.staged[about.argument]);
  }
  return Status::success();
}

} // namespace tandem::runtime
