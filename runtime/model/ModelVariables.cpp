//===- ModelVariables.cpp - a model's parameters and states ---------------===//
#include "runtime/model/Initialize.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>
#include <cstring>

namespace tandem::runtime {

using artifact::Role;

/// Parameters and states in the order of the manifest. On the host they are
/// parts of one block, where small ones share huge pages.
Result<std::vector<Tensor>> ModelCore::allocateVariables() const {
  std::vector<const artifact::Value *> values;
  for (const artifact::Value &value : manifest().values)
    if (value.role == Role::Param || value.role == Role::State)
      values.push_back(&value);
  std::vector<Tensor> tensors;
  auto add = [&](const artifact::Value &value, Result<Tensor> tensor) {
    if (!tensor)
      return std::move(tensor).status().in("'" + value.name + "'");
    tensors.push_back(std::move(*tensor));
    return Status::success();
  };
  if (!place.isHost()) {
    for (const artifact::Value *value : values)
      if (Status status = add(*value, Tensor::empty(value->dtype, value->shape,
                                                    place.device(), account));
          !status)
        return status;
    return tensors;
  }

  std::vector<int64_t> offsets{0};
  for (const artifact::Value *value : values) {
    Result<int64_t> elements = elementCount(value->dtype, value->shape);
    if (!elements)
      return std::move(elements).status().in("'" + value->name + "'");
    int64_t bytes = Storage::allocated(*elements * byteSize(value->dtype));
    if (offsets.back() > maxTensorBytes - bytes)
      return Status::failed("expected parameters and states of at most 2^48 "
                            "bytes together");
    offsets.push_back(offsets.back() + bytes);
  }
  if (values.empty())
    return tensors;
  auto block = Storage::allocate(offsets.back(), account);
  if (!block)
    return std::move(block).status().in("parameters and states");
  for (size_t i = 0; i < values.size(); ++i) {
    auto part =
        Storage::partOf(*block, offsets[i], offsets[i + 1] - offsets[i]);
    if (Status status =
            add(*values[i], Tensor::in(std::move(part), values[i]->dtype,
                                       values[i]->shape));
        !status)
      return status;
  }
  return tensors;
}

Status ModelCore::createVariables() {
  Result<std::vector<Tensor>> tensors = allocateVariables();
  if (!tensors)
    return std::move(tensors).status();
  auto next = tensors->begin();
  for (const artifact::Value &value : manifest().values) {
    if (value.role != Role::Param && value.role != Role::State)
      continue;
    Tensor &tensor = *next++;
    if (Status status = code->clear(*tensor.storage()); !status)
      return std::move(status).in("'" + value.name + "'");
    tensor.storage()->fix();
    byName.emplace_back(value.name, static_cast<int>(variables.size()));
    for (const std::string &other : value.alsoCalled)
      byName.emplace_back(other, static_cast<int>(variables.size()));
    if (tensor.elements())
      byAddress.emplace_back(addressRange(tensor),
                             static_cast<int>(variables.size()));
    variables.push_back({&value, std::move(tensor), false});
  }
  std::sort(byName.begin(), byName.end());
  std::sort(
      byAddress.begin(), byAddress.end(),
      [](const auto &a, const auto &b) { return a.first.low < b.first.low; });
  return Status::success();
}

Status ModelCore::initializeVariables(uint64_t seed) {
  for (Variable &variable : variables) {
    if (!variable.value->init)
      continue;
    // On the host, so that every device gets the same bits.
    Tensor &own = variable.tensor;
    Result<Tensor> host =
        place.isHost() ? own : Tensor::empty(own.dtype(), own.shape());
    if (!host)
      return std::move(host).status();
    const artifact::Value &value = *variable.value;
    comm::Shard shard =
        comm::shardOf(manifest().mesh, value,
                      communicators ? communicators->world().rank() : 0);
    initialize(*host, *value.init, seed, value.name,
               shard.isWhole() ? nullptr : &shard);
    if (host->storage() != own.storage())
      if (Status status = own.copyFrom(*host); !status)
        return std::move(status).in("'" + variable.value->name + "'");
    variable.isSet = true;
  }
  return Status::success();
}

int ModelCore::findVariable(std::string_view name) const {
  auto found = std::lower_bound(byName.begin(), byName.end(), name,
                                [](const auto &entry, std::string_view key) {
                                  return entry.first < key;
                                });
  return found != byName.end() && found->first == name ? found->second : -1;
}

} // namespace tandem::runtime
