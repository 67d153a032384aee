//===- Variables.cpp - a rank's part of a parameter or state --------------===//
#include "runtime/checkpoint/Variables.h"

#include "runtime/comm/MeshCommunicators.h"

#include <algorithm>

namespace tandem::checkpoint {

using artifact::Role;

Part partOf(const runtime::Model &model, const artifact::Value &value,
            int rank) {
  const comm::MeshCommunicators *ranks = model.communicators();
  comm::Shard shard = ranks ? comm::shardOf(ranks->mesh(), value, rank)
                            : comm::allOf(value.shape);
  Part part = {shard.whole, shard.begins, shard.sizes, shard.sizes};
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

Result<io::Array> readPart(const io::TensorFiles &files,
                           const std::string &name, const Part &part) {
  auto block = files.read(name, part.begin, part.sizes);
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
