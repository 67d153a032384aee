//===- Variables.cpp - a rank's part of a parameter or state --------------===//
#include "runtime/checkpoint/Variables.h"
#include "runtime/artifact/Adapters.h"

#include "runtime/comm/MeshCommunicators.h"

#include <algorithm>
#include <cstring>

namespace tandem::checkpoint {

using artifact::Role;

namespace {

/// The parameter whose gradients the optimizer adds up in `value`; null if it
/// is no sum.
const artifact::Value *paramOfSum(const artifact::Manifest &manifest,
                                  const artifact::Value &value) {
  std::string prefix = manifest.optimizer + ".sum:";
  return value.role == Role::State && value.name.starts_with(prefix)
             ? manifest.findValue(value.name.substr(prefix.size()))
             : nullptr;
}

template <typename T>
void addUp(const std::byte *from, int64_t count, io::Array &sum) {
  for (size_t i = 0; i < sum.bytes.size(); i += sizeof(T)) {
    T total = 0;
    for (int64_t rank = 0; rank < count; ++rank) {
      T term;
      std::memcpy(&term, from + size_t(rank) * sum.bytes.size() + i, sizeof(T));
      total += term;
    }
    std::memcpy(sum.bytes.data() + i, &total, sizeof(T));
  }
}

/// Returns the block of a sum, of whatever ranks the file has it.
Result<io::Array> readSum(const io::TensorFiles &files, const std::string &name,
                          const Part &part) {
  const auto &entry = files.entries().at(name);
  bool isFirst = *part.dimsOfRanks == 0 || part.begin[0] == 0;
  std::vector<int64_t> begin(part.begin.begin() + long(*part.dimsOfRanks),
                             part.begin.end());
  std::vector<int64_t> sizes(part.sizes.begin() + long(*part.dimsOfRanks),
                             part.sizes.end());
  int64_t count = entry.shape.size() > sizes.size() ? entry.shape[0] : 1;
  if (entry.shape.size() > sizes.size()) {
    begin.insert(begin.begin(), 0);
    sizes.insert(sizes.begin(), count);
  }
  auto parts = files.read(name, begin, sizes);
  if (!parts)
    return parts;
  io::Array sum = {parts->dtype, part.sizes, {}};
  sum.bytes.resize(count ? parts->bytes.size() / size_t(count) : 0);
  if (isFirst && sum.dtype == artifact::DType::F32)
    addUp<float>(parts->bytes.data(), count, sum);
  else if (isFirst && sum.dtype == artifact::DType::F64)
    addUp<double>(parts->bytes.data(), count, sum);
  else if (isFirst)
    return Status::usage("tensor " + io::inQuotes(name) +
                         ": expected a sum of f32 or f64");
  return sum;
}

} // namespace

bool Part::fits(std::span<const int64_t> tensor) const {
  if (std::ranges::equal(tensor, whole))
    return true;
  if (!dimsOfRanks)
    return false;
  auto ofOne = std::span(whole).subspan(*dimsOfRanks);
  return tensor.size() >= ofOne.size() && tensor.size() <= ofOne.size() + 1 &&
         std::ranges::equal(tensor.last(ofOne.size()), ofOne);
}

bool mayBecome(artifact::DType from, artifact::DType to) {
  using artifact::DType;
  if (from == to)
    return true;
  if (artifact::isFloat(from))
    return artifact::byteSize(from) < artifact::byteSize(to) &&
           artifact::isFloat(to);
  bool areNumbers = artifact::isInteger(from) && artifact::isInteger(to) &&
                    from != DType::Bool && to != DType::Bool;
  return areNumbers && artifact::byteSize(from) < artifact::byteSize(to) &&
         (artifact::isUnsigned(from) || !artifact::isUnsigned(to));
}

Part partOf(const runtime::Model &model, const artifact::Value &value,
            int rank) {
  const comm::MeshCommunicators *ranks = model.communicators();
  comm::Shard shard = ranks ? comm::shardOf(ranks->mesh(), value, rank)
                            : comm::allOf(value.shape);
  Part part = {shard.whole, shard.begins, shard.sizes, shard.sizes, {}};
  if (const artifact::Value *param = paramOfSum(model.manifest(), value))
    part.dimsOfRanks = value.shape.size() - param->shape.size();
  for (size_t d = 0; d < part.sizes.size(); ++d) {
    part.begin[d] = std::min(part.begin[d], part.whole[d]);
    part.sizes[d] = std::min(part.sizes[d], part.whole[d] - part.begin[d]);
  }
  return part;
}

Part ownPart(const runtime::Model &model, const artifact::Value &value) {
  const comm::MeshCommunicators *ranks = model.communicators();
  return partOf(model, value, ranks ? ranks->world().rank() : 0);
}

std::vector<const artifact::Value *> variablesOf(const runtime::Model &model) {
  std::vector<const artifact::Value *> variables;
  for (const artifact::Value &value : model.manifest().values)
    if (value.role == Role::Param || value.role == Role::State)
      variables.push_back(&value);
  return variables;
}

std::vector<const artifact::Value *> savedOf(const runtime::Model &model) {
  const artifact::Manifest &manifest = model.manifest();
  std::vector<const artifact::Value *> saved = variablesOf(model);
  std::erase_if(saved, [&](const artifact::Value *value) {
    const artifact::Value *param = paramOfSum(manifest, *value);
    auto count = param
                     ? model.get(manifest.optimizer + ".summed:" + param->name)
                     : Status::success();
    return param && count && count->elements() == 1 && count->at(0) == 0;
  });
  return saved;
}

Result<std::string> nameIn(const io::TensorFiles &files,
                           const artifact::Value &value) {
  std::vector<std::string> names;
  if (files.entries().contains(value.name))
    names.push_back(value.name);
  for (const std::string &other : value.alsoCalled)
    if (files.entries().contains(other))
      names.push_back(other);
  for (size_t i = 1; i < names.size(); ++i) {
    const auto &one = files.entries().at(names[0]),
               &other = files.entries().at(names[i]);
    bool isSameType = one.dtype == other.dtype && one.shape == other.shape;
    bool isSame = isSameType;
    if (isSameType) {
      auto a = files.read(names[0]), b = files.read(names[i]);
      if (!a || !b)
        return std::move(a ? b : a).status();
      isSame = a->bytes == b->bytes;
    }
    if (!isSame)
      return Status::usage(
          "tensors " + io::inQuotes(names[0]) + " (" +
          runtime::describe(one.dtype, one.shape) + ") and " +
          io::inQuotes(names[i]) + " (" +
          runtime::describe(other.dtype, other.shape) +
          ") are one parameter of the model: expected them to be the same" +
          (isSameType ? ", but their elements differ" : ""));
  }
  return names.empty() ? value.name : names[0];
}

bool isFurtherName(const artifact::Manifest &manifest, std::string_view name) {
  for (const artifact::Value &value : manifest.values)
    if (std::ranges::find(value.alsoCalled, name) != value.alsoCalled.end())
      return true;
  return false;
}

Status refuseAdapters(const io::TensorFiles &files,
                      const artifact::Manifest &manifest) {
  auto hasParam = [&](std::string_view name) {
    return std::ranges::any_of(
        manifest.values, [&](const artifact::Value &value) {
          return value.role == Role::Param && value.name == name;
        });
  };
  for (const auto &[name, entry] : files.entries())
    if (std::string weight = artifact::adaptedWeight(name);
        !weight.empty() && hasParam(weight) && !hasParam(name))
      return Status::usage(
          "has an adapter '" + name + "' of '" + weight +
          "', which the artifact has none for: expected one that was compiled "
          "with --lora, or weights with their adapters in them ('tandem "
          "checkpoint merge --fold-adapters')");
  return Status::success();
}

Result<io::Array> readPart(const io::TensorFiles &files,
                           const std::string &name, const Part &part) {
  bool isSame = files.entries().at(name).shape == part.whole;
  auto block = isSame ? files.read(name, part.begin, part.sizes)
                      : readSum(files, name, part);
  if (!block || part.sizes == part.shape)
    return block;
  io::Array array = {block->dtype, part.shape, {}};
  int64_t size = byteSize(array.dtype);
  array.bytes.resize(size_t(io::elementCount(part.shape).value_or(0) * size));
  std::vector<int64_t> zeros(part.shape.size());
  io::copyBlock(block->bytes.data(), {part.sizes, zeros}, array.bytes.data(),
                {part.shape, zeros}, part.sizes, size);
  return array;
}

Result<runtime::Tensor> valuesOf(const runtime::Model &model,
                                 const std::string &name, const Part &part) {
  auto tensor = model.get(name);
  if (tensor)
    tensor = tensor->onHost();
  if (tensor)
    tensor = tensor->dense();
  if (!tensor || part.sizes == part.shape)
    return tensor;
  auto block = runtime::Tensor::zeros(tensor->dtype(), part.sizes);
  if (!block)
    return block;
  std::vector<int64_t> zeros(part.shape.size());
  io::copyBlock(tensor->data<std::byte>(), {part.shape, zeros},
                block->mutableData<std::byte>(), {part.sizes, zeros},
                part.sizes, byteSize(tensor->dtype()));
  return block;
}

} // namespace tandem::checkpoint
