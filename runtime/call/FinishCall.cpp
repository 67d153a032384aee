//===- FinishCall.cpp - what a call leaves behind -------------------------===//
//
// After the launches: updates are written to the storages that they are of,
// results to where they are wanted, then contexts note versions, and last the
// handles of inputs show what they show from now on. Nothing here fails, but a
// device.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>

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

class Finishing {
public:
  Finishing(const Invocation &call, const MatchedCall &matched,
            PlacedCall &placed, SharedViews &shared,
            const FinishTargets &targets)
      : call(call), program(call.program), plan(call.plan), gives(call.gives),
        matched(matched), placed(placed), shared(shared), targets(targets) {}

  void writeUpdates();
  void writeDestinations();
  void keepVersions();
  void writeHandles();
  /// The first failure of what was queued.
  Status failure;

private:
  void keepSaved();
  void makeViews();
  void writeResult(size_t index);
  void showAliases();
  void write(size_t result, Tensor &target, const Tensor &source);
  Status fetch();
  bool wasOverwritten(const Tensor &tensor) const;
  void note(Status status) {
    if (failure)
      failure = std::move(status);
  }

  const Invocation &call;
  const Program &program;
  const artifact::Program &plan;
  SavedValues *gives;
  const MatchedCall &matched;
  PlacedCall &placed;
  SharedViews &shared;
  const FinishTargets &targets;
};

/// Queues the copy of a result to a tensor, wherever that is. `source` is dense
/// and where the model lives.
void Finishing::write(size_t result, Tensor &target, const Tensor &source) {
  if (target.device() == call.place.device())
    note(target.copyFrom(source));
  else
    note(targets.downloads[result].start(source, target));
}

/// Waits for what goes to the host, if anything does.
Status Finishing::fetch() {
  if (std::none_of(targets.downloads.begin(), targets.downloads.end(),
                   [](const Download &one) { return one.isStarted(); }))
    return Status::success();
  Backend &backend = call.place.backend();
  Status status = backend.record(targets.fetched, call.stream);
  if (status)
    status = backend.await(targets.fetched);
  for (Download &download : targets.downloads)
    download.finish(status.ok());
  return status;
}

void Finishing::writeUpdates() {
  for (size_t r = 0; r < plan.results.size(); ++r) {
    const Slot &slot = plan.results[r];
    const BoundResult &result = program.results[r];
    if (slot.role != Role::Update || !matched.has(result))
      continue;
    // What the program computed it in.
    const void *data = slot.inPlace ? placed.argumentData[result.argument]
                                    : placed.resultData[r];
    if (result.argument >= 0 &&
        program.arguments[result.argument].prepared >= 0) {
      if (!slot.inPlace)
        note(call.place.copy(placed.argumentData[result.argument], data,
                             placed.homes[r]->bytes()));
      continue;
    }
    if (result.variable >= 0) {
      Tensor &target = targets.variables[result.variable].tensor;
      note(call.place.copy(target.mutableData(), data, target.bytes()));
      targets.variables[result.variable].isSet = true;
      continue;
    }
    if (!matched.tensors[result.argument])
      continue; // an undefined cotangent
    Tensor target = *matched.tensors[result.argument];
    if (slot.inPlace && target.data() == data) {
      target.markWritten();
      continue;
    }
    const Tensor *source = placed.homes[r];
    if (slot.inPlace) {
      const BoundArgument &argument = program.arguments[result.argument];
      source = gives && !gives->hooks && argument.kept >= 0
                   ? &gives->kept[argument.kept].own
                   : &targets.staged[result.argument];
    }
    write(r, target, *source);
  }
}

/// Saved values that lie in outputs: before the outputs are handed out.
void Finishing::keepSaved() {
  if (!gives)
    return;
  for (size_t r = 0; r < plan.results.size(); ++r) {
    int home = program.results[r].home;
    if (home < 0)
      continue;
    const Slot &slot = plan.results[r];
    if (auto seen = seenAs(*placed.homes[home], slot.dtype, slot.shape))
      gives->results[r].shared = std::move(*seen);
    else
      note(std::move(seen).status().in(slotName(slot, r)));
  }
}

/// Views of results that got new tensors: before a result that is not wanted
/// itself ends with this call.
void Finishing::makeViews() {
  for (size_t i = 0; i < plan.aliases.size(); ++i) {
    const BoundAlias &alias = program.aliases[i];
    if (!matched.aliases[i] || shared.views[i].defined())
      continue;
    const Tensor &base = *placed.homes[alias.result];
    Layout layout = Layout::of(base.dtype(), base.shape(), base.strides());
    // Validated: over row-major strides every view is one.
    Status status = applyViews(plan.aliases[i].alias.views, layout);
    auto view = base.viewAs(layout.dtype, layout.shape(), layout.strides(),
                            layout.offset * byteSize(layout.dtype));
    if (status && view)
      shared.views[i] = std::move(*view);
    else
      note(status ? std::move(view).status() : std::move(status));
  }
}

void Finishing::writeResult(size_t index) {
  Tensor *wanted = matched.wanted[index];
  if (!wanted)
    return;
  const Slot &slot = plan.results[index];
  const BoundResult &result = program.results[index];
  if (!matched.has(result)) {
    *wanted = Tensor();
    return;
  }
  const Tensor *home = placed.homes[index];
  if (!wanted->defined())
    *wanted = std::move(placed.fresh[index]);
  if (home == wanted) {
    wanted->markWritten();
  } else if (home != &placed.fresh[index]) {
    auto seen = seenAs(*home, slot.dtype, slot.shape);
    if (seen)
      write(index, *wanted, *seen);
    else
      note(std::move(seen).status().in(slotName(slot, index)));
  }
  wanted->setMade(call.isGradMode() && result.isDifferentiable, result.partOf);
}

void Finishing::showAliases() {
  for (size_t i = 0; i < plan.aliases.size(); ++i) {
    Tensor *wanted = matched.aliases[i];
    if (!wanted)
      continue;
    const Tensor &view = shared.views[i];
    if (!wanted->defined())
      *wanted = view;
    else if (!shared.isShown[i])
      note(wanted->copyFrom(view));
    const BoundAlias &alias = program.aliases[i];
    wanted->setMade(call.isGradMode() && alias.isDifferentiable, alias.partOf);
  }
}

void Finishing::writeDestinations() {
  keepSaved();
  makeViews();
  for (size_t r = 0; r < plan.results.size(); ++r)
    writeResult(r);
  // Views of what is on the host show it from here on.
  note(fetch());
  showAliases();
  for (auto [tensor, name] : matched.absent)
    *tensor = Tensor();
}

/// True if this call wrote to elements of the tensor.
bool Finishing::wasOverwritten(const Tensor &tensor) const {
  auto arguments = static_cast<int>(plan.arguments.size());
  return std::any_of(shared.ranges.begin(), shared.ranges.end(),
                     [&](const auto &entry) {
                       const Tensor *other = matched.entry(entry.second);
                       if (entry.second < arguments &&
                           !program.arguments[entry.second].isUpdated)
                         return false;
                       // A destination that was undefined has new memory, or is
                       // a view.
                       return entry.first.low == addressRange(*other).low &&
                              shareMemory(*other, tensor);
                     });
}

/// Notes the versions of what the backward reads by reference. What the program
/// itself wrote to other elements of the same storage does not count.
void Finishing::keepVersions() {
  if (!gives)
    return;
  for (KeptValue &kept : gives->kept)
    if (!call.takes && kept.given.defined() &&
        kept.given.version() != kept.version && !wasOverwritten(kept.given))
      kept.version = kept.given.version();
  for (SavedResult &saved : gives->results)
    if (saved.shared.defined())
      saved.version = saved.shared.version();
}

void Finishing::writeHandles() {
  if (call.isGradMode() && !call.takes)
    for (size_t r = 0; r < plan.results.size(); ++r) {
      const BoundResult &result = program.results[r];
      if (!plan.results[r].visible || !result.isDifferentiable ||
          result.variable >= 0)
        continue;
      matched.handles[result.argument]->setMade(true);
      if (shared.newHandles[result.argument].defined())
        shared.newHandles[result.argument].setMade(true);
    }
  if (!program.changesHandles)
    return;
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    // The storage that the handle had at the call.
    if (plan.arguments[a].resize == 0)
      (void)matched.given[a]->resizeStorage(0).ok();
  }
  for (size_t a = 0; a < plan.arguments.size(); ++a)
    if (shared.newHandles[a].defined())
      *matched.handles[a] = std::move(shared.newHandles[a]);
}

} // namespace

Status finish(const Invocation &call, const MatchedCall &matched,
              PlacedCall &placed, SharedViews &shared,
              const FinishTargets &targets) {
  Finishing step(call, matched, placed, shared, targets);
  step.writeUpdates();
  step.writeDestinations();
  if (!step.failure)
    return std::move(step.failure);
  step.keepVersions();
  step.writeHandles();
  return Status::success();
}

} // namespace tandem::runtime
