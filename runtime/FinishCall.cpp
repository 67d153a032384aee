//===- FinishCall.cpp - what a call leaves behind -------------------------===//
//
// After the launches: updates are written to the storages that they are of,
// results to where they are wanted, then contexts note versions, and last the
// handles of inputs show what they show from now on. Nothing here fails, but a
// hook.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

#include <algorithm>
#include <exception>

namespace tandem::runtime {

using artifact::Layout;
using artifact::Role;
using artifact::Slot;

namespace {

/// The dense tensor as another type of as many bytes.
Result<Tensor> seenAs(const Tensor &tensor, artifact::DType dtype,
                      const std::vector<int64_t> &shape) {
  Layout layout = Layout::of(dtype, shape);
  return tensor.viewAs(dtype, layout.shape(), layout.strides(), 0);
}

} // namespace

void Call::writeUpdates() {
  for (size_t r = 0; r < program.results.size(); ++r) {
    const Slot &slot = program.results[r];
    const BoundResult &result = bound.results[r];
    if (slot.role != Role::Update || (!allDefined && !holds(result.needs)))
      continue;
    // What the program computed it in.
    const void *data = slot.inPlace ? bound.argumentData[result.argument]
                                    : bound.resultData[r];
    if (result.variable >= 0) {
      Tensor &target = core.variables[result.variable].tensor;
      note(place.copy(target.mutableData(), data, target.bytes()));
      core.variables[result.variable].isSet = true;
      continue;
    }
    if (!tensorOf(result.argument))
      continue; // an undefined cotangent
    Tensor target = *tensorOf(result.argument);
    if (slot.inPlace && target.data() == data) {
      target.markWritten();
      continue;
    }
    const Tensor *source = bound.homes[r];
    if (slot.inPlace) {
      const BoundArgument &argument = bound.arguments[result.argument];
      source = gives && !gives->hooks && argument.kept >= 0
                   ? &gives->kept[argument.kept].own
                   : &bound.staged[result.argument];
    }
    write(r, target, *source);
  }
}

/// Saved values that lie in outputs: before the outputs are handed out.
void Call::keepSaved() {
  if (!gives)
    return;
  for (size_t r = 0; r < program.results.size(); ++r) {
    int home = bound.results[r].home;
    if (home < 0)
      continue;
    const Slot &slot = program.results[r];
    if (auto seen = seenAs(*bound.homes[home], slot.dtype, slot.shape))
      gives->results[r].shared = std::move(*seen);
    else
      note(std::move(seen).status().in(name(slot, r)));
  }
}

void Call::writeDestinations() {
  keepSaved();
  // Views first: a result that is not wanted itself ends with this call.
  for (size_t i = 0; i < program.aliases.size(); ++i) {
    const BoundAlias &alias = bound.aliases[i];
    Tensor *wanted = bound.wantedAliases[i];
    if (!wanted || bound.views[i].defined())
      continue;
    const Tensor &base = *bound.homes[alias.result];
    Layout layout = Layout::of(base.dtype(), base.shape(), base.strides());
    // Validated: over row-major strides every view is one.
    Status status = applyViews(program.aliases[i].alias.views, layout);
    auto view = base.viewAs(layout.dtype, layout.shape(), layout.strides(),
                            layout.offset * byteSize(layout.dtype));
    if (status && view)
      bound.views[i] = std::move(*view);
    else
      note(status ? std::move(view).status() : std::move(status));
  }
  for (size_t r = 0; r < program.results.size(); ++r) {
    Tensor *wanted = bound.wanted[r];
    if (!wanted)
      continue;
    const Slot &slot = program.results[r];
    const BoundResult &result = bound.results[r];
    if (!allDefined && !holds(result.needs)) {
      *wanted = Tensor();
      continue;
    }
    const Tensor *home = bound.homes[r];
    if (!wanted->defined())
      *wanted = std::move(bound.fresh[r]);
    if (home == wanted) {
      wanted->markWritten();
    } else if (home != &bound.fresh[r]) {
      auto seen = seenAs(*home, slot.dtype, slot.shape);
      if (seen)
        write(r, *wanted, *seen);
      else
        note(std::move(seen).status().in(name(slot, r)));
    }
    wanted->setMade(isGradMode() && result.isDifferentiable, result.partOf);
  }
  // Views of what is on the host show it from here on.
  if (!place.isHost())
    note(fetch());
  for (size_t i = 0; i < program.aliases.size(); ++i) {
    Tensor *wanted = bound.wantedAliases[i];
    if (!wanted)
      continue;
    const Tensor &view = bound.views[i];
    if (!wanted->defined())
      *wanted = view;
    else if (!bound.isShown[i])
      note(wanted->copyFrom(view));
    const BoundAlias &alias = bound.aliases[i];
    wanted->setMade(isGradMode() && alias.isDifferentiable, alias.partOf);
  }
  for (auto [tensor, name] : bound.absent)
    *tensor = Tensor();
}

void Call::clearDestinations() {
  for (Tensor *wanted : bound.wanted)
    if (wanted)
      *wanted = Tensor();
  for (auto [tensor, name] : bound.absent)
    *tensor = Tensor();
}

/// True if this call wrote to elements of the tensor.
bool Call::wasOverwritten(const Tensor &tensor) const {
  auto arguments = static_cast<int>(program.arguments.size());
  return std::any_of(bound.ranges.begin(), bound.ranges.end(),
                     [&](const auto &entry) {
                       const Tensor *other = entryTensor(entry.second);
                       if (entry.second < arguments &&
                           !bound.arguments[entry.second].isUpdated)
                         return false;
                       // A destination that was undefined has new memory, or is
                       // a view.
                       return entry.first.low == addressRange(*other).low &&
                              shareMemory(*other, tensor);
                     });
}

/// Notes the versions of what the backward reads by reference. What the program
/// itself wrote to other elements of the same storage does not count.
void Call::keep() {
  if (!gives)
    return;
  for (KeptValue &kept : gives->kept)
    if (!takes && kept.given.defined() &&
        kept.given.version() != kept.version && !wasOverwritten(kept.given))
      kept.version = kept.given.version();
  for (SavedResult &saved : gives->results)
    if (saved.shared.defined())
      saved.version = saved.shared.version();
}

void Call::writeHandles() {
  if (isGradMode() && !takes)
    for (size_t r = 0; r < program.results.size(); ++r) {
      const BoundResult &result = bound.results[r];
      if (!program.results[r].visible || !result.isDifferentiable ||
          result.variable >= 0)
        continue;
      bound.handles[result.argument]->setMade(true);
      if (bound.newHandles[result.argument].defined())
        bound.newHandles[result.argument].setMade(true);
    }
  if (!bound.changesHandles)
    return;
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    // The storage that the handle had at the call.
    if (program.arguments[a].resize == 0)
      (void)bound.given[a]->resizeStorage(0).ok();
  }
  for (size_t a = 0; a < program.arguments.size(); ++a)
    if (bound.newHandles[a].defined())
      *bound.handles[a] = std::move(bound.newHandles[a]);
}

/// Lets the hooks have each saved value; the context holds what they made. An
/// error of a hook is handed on as it is.
Status Call::pack() {
  auto packOne = [&](const Slot &slot, const Tensor &value,
                     PackedValue &to) -> Status {
    uint64_t version = value.version();
    Result<std::shared_ptr<void>> packed = Status::success();
    try {
      packed = gives->hooks->pack(slot.name, value);
    } catch (const std::exception &error) {
      packed = Status::failed(error.what());
    }
    std::string hook = "the pack hook of '" + slot.name + "'" +
                       (slot.where.empty() ? "" : ", saved by " + slot.where);
    if (!packed)
      return std::move(packed).status();
    if (value.version() != version)
      return Status::usage(hook + " wrote the value: expected version " +
                           std::to_string(version) + " but got " +
                           std::to_string(value.version()));
    to.packed = std::move(*packed);
    to.isPacked = true;
    return Status::success();
  };
  // Memory that a hook holds on to is not used again.
  auto release = [](Tensor &own, long users) {
    if (own.defined() && own.storage().use_count() > users)
      own = Tensor();
  };
  for (size_t r = 0; r < program.results.size(); ++r) {
    if (program.results[r].role != Role::Saved)
      continue;
    SavedResult &saved = gives->results[r];
    Tensor value =
        saved.shared.defined() ? saved.shared.detach() : *bound.homes[r];
    if (program.results[r].onHost)
      if (Status status = core.hostMemory.await(value, /*isWrite=*/false);
          !status)
        return status;
    if (Status status = packOne(program.results[r], value, saved); !status)
      return status;
    saved.shared = Tensor();
    value = Tensor();
    int home = bound.results[r].home;
    release(bound.internal[home < 0 ? r : home], 1);
  }
  for (size_t k = 0; k < bound.kept.size(); ++k) {
    const BoundKept &about = bound.kept[k];
    if (!about.isRead)
      continue;
    KeptValue &kept = gives->kept[k];
    Tensor value = kept.value.detach();
    if (Status status = packOne(*about.reader, value, kept); !status)
      return status;
    value = kept.value = Tensor();
    if (!about.isFound)
      kept.given = Tensor();
    if (about.argument >= 0)
      release(bound.staged[about.argument], 1);
  }
  return Status::success();
}

} // namespace tandem::runtime
