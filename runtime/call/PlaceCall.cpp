//===- PlaceCall.cpp - a place for every argument and result --------------===//
//
// Kernels want dense, aligned buffers: what is not, or must not be written, is
// copied. Results go where they will be used: into the caller's tensor, a new
// one, the context's buffers, or memory that the program keeps. All memory of a
// call is allocated here, but what hooks bring (Hooks.cpp).
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"
#include "runtime/tensor/Strides.h"

#include <algorithm>

namespace tandem::runtime {

using artifact::Role;
using artifact::Slot;

Status ensure(Tensor &tensor, const Slot &slot, const ModelCore &core) {
  if (tensor.defined())
    return Status::success();
  Result<Tensor> made = slot.onHost
                            ? core.hostMemory.allocate(slot.dtype, slot.shape)
                            : Tensor::empty(slot.dtype, slot.shape,
                                            core.place.device(), core.account);
  if (!made)
    return std::move(made).status().in("'" + slot.name + "'");
  tensor = std::move(*made);
  return Status::success();
}

namespace {

class Placing {
public:
  Placing(const Invocation &call, const MatchedCall &matched,
          std::span<const Tensor> prepared, Workspace &workspace,
          PlacedCall &placed)
      : call(call), core(call.core), program(call.program), plan(call.plan),
        gives(call.gives), takes(call.takes), matched(matched),
        prepared(prepared), workspace(workspace), placed(placed) {}

  Status results();
  Status resizeStorages();
  Status arguments();

private:
  Status placeDownload(size_t index);
  Status placeResult(size_t index);
  Status placeLaidOut(size_t index, const Extents &strides);
  const Extents *gradientLayout(size_t result) const;
  bool isDirect(const Tensor &wanted) const;
  void noteLayouts();
  Status placeArgument(size_t index);
  bool isProtected(size_t index) const;

  const Invocation &call;
  const ModelCore &core;
  const Program &program;
  const artifact::Program &plan;
  SavedValues *gives;
  const SavedValues *takes;
  const MatchedCall &matched;
  std::span<const Tensor> prepared;
  Workspace &workspace;
  PlacedCall &placed;
};

/// Gives freed storages their memory. If that fails, none has it.
Status Placing::resizeStorages() {
  if (!program.changesHandles)
    return Status::success();
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const Slot &slot = plan.arguments[a];
    if (slot.resize.value_or(0) == 0)
      continue;
    if (Status status = matched.given[a]->resizeStorage(*slot.resize);
        !status) {
      for (size_t before = 0; before < a; ++before)
        if (plan.arguments[before].resize.value_or(0) > 0)
          (void)matched.given[before]->resizeStorage(0).ok();
      return std::move(status).in(argumentName(plan, a));
    }
  }
  return Status::success();
}

Status Placing::arguments() {
  placed.copies.clear();
  if (gives) {
    noteLayouts();
    for (size_t k = 0; k < program.kept.size(); ++k) {
      int v = program.kept[k].variable;
      if (v < 0)
        continue;
      KeptValue &kept = gives->kept[k];
      kept.given = kept.value = core.variables[v].tensor;
      kept.version = kept.given.version();
    }
  }
  for (size_t a = 0; a < plan.arguments.size(); ++a)
    if (Status status = placeArgument(a); !status)
      return status;
  return Status::success();
}

Status Placing::placeArgument(size_t index) {
  const Slot &slot = plan.arguments[index];
  const BoundArgument &argument = program.arguments[index];
  void *&data = placed.argumentData[index];
  data = nullptr;
  const Tensor *source = matched.tensors[index];
  KeptValue *kept =
      gives && argument.kept >= 0 ? &gives->kept[argument.kept] : nullptr;
  uint64_t version = source ? source->version() : 0;
  const Tensor *given = source;
  if (argument.saved >= 0) {
    const SavedResult &saved = takes->results[argument.saved];
    if (saved.isPacked)
      return Status::success(); // unpackAll
    source = given = &saved.value();
    version = saved.shared.defined() ? saved.version : source->version();
  } else if (argument.prepared >= 0) {
    source = given = &prepared[argument.prepared];
  } else if (argument.found >= 0) {
    const KeptValue &found = takes->kept[argument.found];
    if (found.isPacked && !slot.asFound)
      return Status::success();
    if (argument.variable < 0 && slot.role == Role::Saved)
      source = &found.value;
    given = &found.given;
    version = found.version;
  }
  if (slot.freed && slot.resize.value_or(0) == 0)
    return Status::success();
  bool isZeros = !source;
  bool isReadAnyway =
      call.mode.onlyWanted && workspace.wanted.slice.reads[index];
  if (isZeros && !gives && !argument.isAlwaysRead && !isReadAnyway &&
      !matched.isZeros[index])
    return Status::success(); // no launch that runs reads it

  bool mustStay =
      call.mode.retain || gives || (takes && call.mode.takes->use_count() > 1);
  // What a forward left on the host stays there, for copies alone.
  bool isCopied = !slot.onHost && (isZeros || !call.place.isUsable(*source) ||
                                   argument.isCopied || isProtected(index) ||
                                   (argument.isDonated && mustStay));
  const Tensor *read = source;
  if (isCopied) {
    Tensor &copy = kept && !gives->hooks ? kept->own : workspace.staged[index];
    if (Status status = ensure(copy, slot, core); !status)
      return status;
    if (source && source->device() != call.place.device())
      if (Status status = workspace.uploads[index].reserve(call.place.backend(),
                                                           copy.bytes());
          !status)
        return std::move(status).in(argumentName(plan, index));
    placed.copies.push_back({index, &copy, source});
    read = &copy;
  }
  data = const_cast<void *>(read->data());
  if (kept && argument.variable < 0) {
    kept->given = given ? *given : *read;
    kept->value = *read;
    kept->version = version;
    if (!given)
      placed.copies.back().stamp = kept; // zeros
  }
  return Status::success();
}

/// Where a second derivative runs with zeros for what is undefined, updates
/// that only the undefined feeds must not show.
bool Placing::isProtected(size_t index) const {
  if (!gives || !takes || matched.allDefined ||
      !program.arguments[index].isUpdated)
    return false;
  return std::any_of(program.results.begin(), program.results.end(),
                     [&](const BoundResult &result) {
                       return result.argument == static_cast<int>(index) &&
                              !matched.holds(result.needs);
                     });
}

/// Notes how the gradients of what is given will lie.
void Placing::noteLayouts() {
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    Role role = plan.arguments[a].role;
    if (role != Role::Input && role != Role::Cotangent)
      continue;
    Extents &layout = gives->layouts[a];
    layout = Extents();
    // The gradient of what a program made goes to that program, which wants it
    // row-major.
    const Tensor *tensor = matched.given[a];
    if (!tensor || !tensor->defined() || !tensor->isLeaf())
      continue;
    Extents rowMajor = rowMajorStrides(tensor->shape());
    Extents strides = gradientStrides(*tensor);
    for (int d = 0; d < strides.size(); ++d)
      if (strides[d] != rowMajor[d])
        layout = strides;
  }
}

/// The strides of a new tensor for a gradient; null: row-major.
const Extents *Placing::gradientLayout(size_t result) const {
  const BoundResult &about = program.results[result];
  if (about.leaf < 0)
    return nullptr;
  const SavedValues *given = about.isLeafOfBase ? takes->base.get() : takes;
  const Extents &layout = given->layouts[about.leaf];
  return layout.size() ? &layout : nullptr;
}

/// Makes a new tensor for a gradient that is computed row-major and then
/// copied, unless these strides lead to the same places.
Status Placing::placeLaidOut(size_t index, const Extents &strides) {
  const Slot &slot = plan.results[index];
  Tensor &fresh = placed.fresh[index];
  if (Status status = ensure(fresh, slot, core); !status)
    return status;
  bool isThere = areSamePlaces(fresh.shape(), fresh.strides(), strides);
  fresh = *fresh.view(slot.shape, strides);
  placed.homes[index] = isThere ? &fresh : &workspace.internal[index];
  return ensure(*placed.homes[index], slot, core);
}

/// True if a result can be computed in the caller's tensor: where that lies
/// over an argument, the launches may still read what they would overwrite.
bool Placing::isDirect(const Tensor &wanted) const {
  if (!call.place.isUsable(wanted))
    return false;
  AddressRange range = addressRange(wanted);
  if (takes)
    for (const SavedResult &saved : takes->results)
      if (saved.shared.defined() && addressRange(saved.shared).meets(range))
        return false;
  return std::none_of(matched.given.begin(), matched.given.end(),
                      [&](const Tensor *given) {
                        return given && addressRange(*given).meets(range);
                      });
}

Status Placing::results() {
  for (size_t r = 0; r < plan.results.size(); ++r) {
    placed.homes[r] = nullptr;
    placed.resultData[r] = nullptr;
    if (Status status = placeDownload(r); !status)
      return status;
    // In place: the argument's. In an output: no buffer refers to it.
    if (plan.results[r].inPlace || program.results[r].home >= 0)
      continue;
    if (Status status = placeResult(r); !status)
      return status;
    placed.resultData[r] = const_cast<void *>(placed.homes[r]->data());
  }
  return Status::success();
}

/// Reserves the way to the host for a result that goes there from a device.
Status Placing::placeDownload(size_t index) {
  const Slot &slot = plan.results[index];
  const Tensor *target = matched.wanted[index];
  if (slot.role == Role::Update && program.results[index].argument >= 0)
    target = matched.tensors[program.results[index].argument];
  if (!target || !target->defined() || target->device() == call.place.device())
    return Status::success();
  Status status =
      workspace.downloads[index].reserve(call.place.backend(), target->bytes());
  return status ? status : std::move(status).in(slotName(slot, index));
}

Status Placing::placeResult(size_t index) {
  const Slot &slot = plan.results[index];
  const BoundResult &result = program.results[index];
  Tensor *&home = placed.homes[index];
  Tensor *wanted = matched.wanted[index];
  bool isKept = gives && !gives->hooks;
  bool hasView = false;
  for (size_t i = 0; i < program.aliases.size(); ++i)
    hasView |= program.aliases[i].result == static_cast<int>(index) &&
               matched.aliases[i];
  if (slot.role == Role::Saved && isKept)
    home = &gives->results[index].own;
  else if (wanted && wanted->defined() && isDirect(*wanted))
    home = wanted;
  else if (const Extents *layout = gradientLayout(index);
           layout && wanted && !wanted->defined())
    return placeLaidOut(index, *layout);
  else if (wanted ? !wanted->defined() : hasView)
    home = &placed.fresh[index];
  else if (result.isShared && isKept) {
    // Nobody else has it: the first value that lies in it brings the buffer.
    size_t saved = 0;
    while (program.results[saved].home != static_cast<int>(index))
      ++saved;
    home = &gives->results[saved].own;
    return ensure(*home, plan.results[saved], core);
  } else
    home = &workspace.internal[index];
  return ensure(*home, slot, core);
}

} // namespace

Status place(const Invocation &call, const MatchedCall &matched,
             std::span<const Tensor> prepared, Workspace &workspace,
             PlacedCall &placed) {
  Placing step(call, matched, prepared, workspace, placed);
  if (Status status = step.results(); !status)
    return status;
  if (Status status = step.resizeStorages(); !status)
    return status;
  Status status = step.arguments();
  if (!status)
    freeResized(call, matched);
  return status;
}

void freeResized(const Invocation &call, const MatchedCall &matched) {
  if (!call.program.changesHandles)
    return;
  for (size_t a = 0; a < call.plan.arguments.size(); ++a)
    if (call.plan.arguments[a].resize.value_or(0) > 0)
      (void)matched.given[a]->resizeStorage(0).ok();
}

Status copyArguments(const Invocation &call, const PlacedCall &placed,
                     std::span<Upload> uploads) {
  for (const ArgumentCopy &copy : placed.copies) {
    Status status;
    if (!copy.from)
      status = copy.to->zero();
    else if (copy.from->device() == call.place.device())
      status = copy.to->copyFrom(*copy.from);
    else
      status = uploads[copy.argument].copy(*copy.to, *copy.from);
    if (!status)
      return std::move(status).in(argumentName(call.plan, copy.argument));
    if (copy.stamp)
      copy.stamp->version = copy.to->version();
  }
  return Status::success();
}

} // namespace tandem::runtime
