//===- PlaceCall.cpp - a place for every argument and result --------------===//
//
// Kernels want dense, aligned buffers: what is not, or must not be written, is
// copied. Results go where they will be used: into the caller's tensor, a new
// one, the context's buffers, or memory that the program keeps. All memory of a
// call is allocated here.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"
#include "runtime/Strides.h"

#include <algorithm>
#include <exception>

namespace tandem::runtime {

using artifact::Role;
using artifact::Slot;

namespace {

/// Allocates `tensor` with the type of `slot` unless it has it.
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

} // namespace

/// Gives freed storages their memory. If that fails, none has it.
Status Call::resizeStorages() {
  if (!bound.changesHandles)
    return Status::success();
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const Slot &slot = program.arguments[a];
    if (slot.resize.value_or(0) == 0)
      continue;
    if (Status status = bound.given[a]->resizeStorage(*slot.resize); !status) {
      for (size_t before = 0; before < a; ++before)
        if (program.arguments[before].resize.value_or(0) > 0)
          (void)bound.given[before]->resizeStorage(0).ok();
      return std::move(status).in(argumentName(a));
    }
  }
  return Status::success();
}

Status Call::placeArguments() {
  bound.copies.clear();
  if (gives) {
    noteLayouts();
    for (size_t k = 0; k < bound.kept.size(); ++k) {
      int v = bound.kept[k].variable;
      if (v < 0)
        continue;
      KeptValue &kept = gives->kept[k];
      kept.given = kept.value = core.variables[v].tensor;
      kept.version = kept.given.version();
    }
  }
  for (size_t a = 0; a < program.arguments.size(); ++a)
    if (Status status = placeArgument(a); !status)
      return status;
  return Status::success();
}

/// Undoes resizeStorages.
void Call::freeResized() {
  for (size_t a = 0; bound.changesHandles && a < program.arguments.size(); ++a)
    if (program.arguments[a].resize.value_or(0) > 0)
      (void)bound.given[a]->resizeStorage(0).ok();
}

/// Makes the copies that arguments were given a place for.
Status Call::copyArguments() {
  for (const ArgumentCopy &copy : bound.copies) {
    Status status;
    if (!copy.from)
      status = copy.to->zero();
    else if (copy.from->device() == place.device())
      status = copy.to->copyFrom(*copy.from);
    else
      status = bound.uploads[copy.argument].copy(*copy.to, *copy.from);
    if (!status)
      return std::move(status).in(argumentName(copy.argument));
    if (copy.stamp)
      copy.stamp->version = copy.to->version();
  }
  return Status::success();
}

Status Call::placeArgument(size_t index) {
  const Slot &slot = program.arguments[index];
  const BoundArgument &argument = bound.arguments[index];
  void *&data = bound.argumentData[index];
  data = nullptr;
  const Tensor *source = tensorOf(index);
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
    source = given = &bound.prepares->internal[argument.prepared];
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
  bool isReadAnyway = mode.onlyWanted && bound.slice.reads[index];
  if (isZeros && !gives && !argument.isAlwaysRead && !isReadAnyway)
    return Status::success(); // no launch that runs reads it

  // Where a second derivative runs with zeros for what is undefined, updates
  // that only the undefined feeds must not show.
  bool isProtected = false;
  if (gives && takes && !allDefined && argument.isUpdated)
    for (const BoundResult &result : bound.results)
      isProtected |=
          result.argument == static_cast<int>(index) && !holds(result.needs);
  bool mustStay =
      mode.retain || gives || (takes && mode.takes->use_count() > 1);
  // What a forward left on the host stays there, for copies alone.
  bool isCopied = !slot.onHost &&
                  (isZeros || !place.isUsable(*source) || argument.isCopied ||
                   isProtected || (argument.isDonated && mustStay));
  const Tensor *read = source;
  if (isCopied) {
    Tensor &copy = kept && !gives->hooks ? kept->own : bound.staged[index];
    if (Status status = ensure(copy, slot, core); !status)
      return status;
    if (source && source->device() != place.device())
      if (Status status =
              bound.uploads[index].reserve(*place.backend(), copy.bytes());
          !status)
        return std::move(status).in(argumentName(index));
    bound.copies.push_back({index, &copy, source});
    read = &copy;
  }
  data = const_cast<void *>(read->data());
  if (kept && argument.variable < 0) {
    kept->given = given ? *given : *read;
    kept->value = *read;
    kept->version = version;
    if (!given)
      bound.copies.back().stamp = kept; // zeros
  }
  return Status::success();
}

/// Notes how the gradients of what is given will lie.
void Call::noteLayouts() {
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    Role role = program.arguments[a].role;
    if (role != Role::Input && role != Role::Cotangent)
      continue;
    Extents &layout = gives->layouts[a];
    layout = Extents();
    // The gradient of what a program made goes to that program, which wants it
    // row-major.
    const Tensor *tensor = bound.given[a];
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
const Extents *Call::gradientLayout(size_t result) const {
  const BoundResult &about = bound.results[result];
  if (about.leaf < 0)
    return nullptr;
  const SavedValues *given = about.isLeafOfBase ? takes->base.get() : takes;
  const Extents &layout = given->layouts[about.leaf];
  return layout.size() ? &layout : nullptr;
}

/// Makes a new tensor for a gradient that is computed row-major and then
/// copied, unless these strides lead to the same places.
Status Call::placeLaidOut(size_t index, const Extents &strides) {
  const Slot &slot = program.results[index];
  Tensor &fresh = bound.fresh[index];
  if (Status status = ensure(fresh, slot, core); !status)
    return status;
  bool isThere = areSamePlaces(fresh.shape(), fresh.strides(), strides);
  fresh = *fresh.view(slot.shape, strides);
  bound.homes[index] = isThere ? &fresh : &bound.internal[index];
  return ensure(*bound.homes[index], slot, core);
}

/// True if a result can be computed in the caller's tensor: where that lies
/// over an argument, the launches may still read what they would overwrite.
bool Call::isDirect(const Tensor &wanted) const {
  if (!place.isUsable(wanted))
    return false;
  AddressRange range = addressRange(wanted);
  if (takes)
    for (const SavedResult &saved : takes->results)
      if (saved.shared.defined() && addressRange(saved.shared).meets(range))
        return false;
  return std::none_of(bound.given.begin(), bound.given.end(),
                      [&](const Tensor *given) {
                        return given && addressRange(*given).meets(range);
                      });
}

Status Call::placeResults() {
  for (size_t r = 0; r < program.results.size(); ++r) {
    bound.homes[r] = nullptr;
    bound.resultData[r] = nullptr;
    if (Status status = placeDownload(r); !status)
      return status;
    // In place: the argument's. In an output: no buffer refers to it.
    if (program.results[r].inPlace || bound.results[r].home >= 0)
      continue;
    if (Status status = placeResult(r); !status)
      return status;
    bound.resultData[r] = const_cast<void *>(bound.homes[r]->data());
  }
  return Status::success();
}

/// Reserves the way to the host for a result that goes there from a device.
Status Call::placeDownload(size_t index) {
  const Slot &slot = program.results[index];
  const Tensor *target = bound.wanted[index];
  if (slot.role == Role::Update && bound.results[index].argument >= 0)
    target = tensorOf(bound.results[index].argument);
  if (!target || !target->defined() || target->device() == place.device())
    return Status::success();
  Status status =
      bound.downloads[index].reserve(*place.backend(), target->bytes());
  return status ? status : std::move(status).in(name(slot, index));
}

Status Call::placeResult(size_t index) {
  const Slot &slot = program.results[index];
  const BoundResult &result = bound.results[index];
  Tensor *&home = bound.homes[index];
  Tensor *wanted = bound.wanted[index];
  bool isKept = gives && !gives->hooks;
  bool hasView = false;
  for (size_t i = 0; i < bound.aliases.size(); ++i)
    hasView |= bound.aliases[i].result == static_cast<int>(index) &&
               bound.wantedAliases[i];
  if (slot.role == Role::Saved && isKept)
    home = &gives->results[index].own;
  else if (wanted && wanted->defined() && isDirect(*wanted))
    home = wanted;
  else if (const Extents *layout = gradientLayout(index);
           layout && wanted && !wanted->defined())
    return placeLaidOut(index, *layout);
  else if (wanted ? !wanted->defined() : hasView)
    home = &bound.fresh[index];
  else if (result.isShared && isKept) {
    // Nobody else has it: the first value that lies in it brings the buffer.
    size_t saved = 0;
    while (bound.results[saved].home != static_cast<int>(index))
      ++saved;
    home = &gives->results[saved].own;
    return ensure(*home, program.results[saved], core);
  } else
    home = &bound.internal[index];
  return ensure(*home, slot, core);
}

Status Call::unpackAll() {
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const BoundArgument &argument = bound.arguments[a];
    const PackedValue *value = nullptr;
    if (argument.saved >= 0)
      value = &takes->results[argument.saved];
    else if (argument.found >= 0 && !program.arguments[a].asFound)
      value = &takes->kept[argument.found];
    if (value && value->isPacked)
      if (Status status = unpack(a, *value); !status)
        return status;
  }
  return Status::success();
}

/// Calls the hook, and makes what it gives the argument. An error of its own is
/// handed on as it is.
Status Call::unpack(size_t index, const PackedValue &value) {
  const Slot &slot = program.arguments[index];
  const BoundArgument &argument = bound.arguments[index];
  Result<Tensor> made = Status::success();
  try {
    made = takes->hooks->unpack(slot.name, value.packed);
  } catch (const std::exception &error) {
    return Status::failed(error.what());
  }
  if (!made)
    return std::move(made).status();
  auto where = [&] {
    return "cannot run '" + program.name + "': " + argumentName(index);
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
  if (!place.reaches(*made) || !made->isBacked())
    return Status::usage("expected a tensor on device " + place.names() +
                         " with elements from the unpack hook")
        .in(where());
  Tensor &tensor = bound.unpacked[index];
  tensor = std::move(*made);
  if (slot.onHost)
    return unpackOnHost(index);
  // What the hook gave is the caller's: it is never donated.
  if (!place.isUsable(tensor) || argument.isDonated) {
    Tensor &copy = bound.staged[index];
    if (Status status = ensure(copy, slot, core); !status)
      return status;
    if (Status status = copy.copyFrom(tensor); !status)
      return status;
    bound.argumentData[index] = const_cast<void *>(copy.data());
  } else {
    bound.argumentData[index] = const_cast<void *>(tensor.data());
  }
  if (gives && argument.kept >= 0) {
    KeptValue &kept = gives->kept[argument.kept];
    kept.given = kept.value = tensor;
    kept.version = tensor.version();
  }
  return Status::success();
}

/// Brings what a hook gave to memory that the device's copies read.
Status Call::unpackOnHost(size_t index) {
  const Slot &slot = program.arguments[index];
  const Tensor &made = bound.unpacked[index];
  int number = bound.arguments[index].kept;
  KeptValue *kept = gives && number >= 0 ? &gives->kept[number] : nullptr;
  Tensor &copy = kept && !gives->hooks ? kept->own : bound.staged[index];
  if (Status status = ensure(copy, slot, core); !status)
    return status;
  if (Status status = core.hostMemory.await(copy, /*isWrite=*/true); !status)
    return status;
  if (Status status = copy.copyFrom(made); !status)
    return status;
  bound.argumentData[index] = const_cast<void *>(copy.data());
  if (kept) {
    kept->given = made;
    kept->value = copy;
    kept->version = made.version();
  }
  return Status::success();
}

} // namespace tandem::runtime
