//===- Pieces.cpp - values that several ranks have together ---------------===//
#include "runtime/model/Pieces.h"

#include <algorithm>

namespace tandem::runtime {

namespace {

comm::Shard shardOf(const comm::MeshCommunicators *communicators,
                    const artifact::Sharding &sharding,
                    std::span<const int64_t> sizes, int64_t rank) {
  return comm::shardOf(communicators ? communicators->mesh() : comm::Mesh(),
                       sharding, sizes, rank);
}

} // namespace

artifact::Manifest wholeManifest(const artifact::Manifest &manifest) {
  using artifact::Role;
  artifact::Manifest whole = manifest;
  auto widen = [&](std::vector<int64_t> &shape, const artifact::Value *value) {
    if (value)
      shape = comm::shardOf(manifest.mesh, value->sharding, shape, 0).whole;
  };
  for (artifact::Value &value : whole.values)
    widen(value.shape, &value);
  for (artifact::Program &program : whole.programs) {
    for (artifact::Slot &slot : program.arguments)
      if (slot.role == Role::Input || slot.role == Role::Param ||
          slot.role == Role::State)
        widen(slot.shape, manifest.findValue(slot.name));
    for (artifact::Slot &slot : program.results)
      if (slot.role == Role::Output)
        widen(slot.shape, manifest.findOutput(slot.name));
    for (artifact::OutputAlias &alias : program.aliases)
      widen(alias.shape, manifest.findOutput(alias.name));
  }
  return whole;
}

Result<Tensor> wholeOf(const Tensor &piece, const artifact::Sharding &sharding,
                       const comm::MeshCommunicators *communicators) {
  Result<Tensor> host = piece.onHost();
  if (!host)
    return host;
  comm::Shard own = shardOf(communicators, sharding, host->shape(), 0);
  if (own.isWhole())
    return host;
  Result<Tensor> dense = host->dense();
  if (!dense)
    return dense;
  comm::Communicator &world = communicators->world();
  int64_t bytes = dense->bytes();
  Result<Tensor> whole = Tensor::zeros(dense->dtype(), own.whole);
  std::vector<int64_t> all{bytes * world.ranks()};
  Result<Tensor> pieces = Tensor::zeros(DType::U8, all);
  if (!whole || !pieces)
    return whole ? pieces : whole;
  if (Status status =
          world.allGather(dense->data(), pieces->mutableData(), bytes);
      !status)
    return status;
  for (int rank = 0; rank < world.ranks(); ++rank)
    comm::putPiece(shardOf(communicators, sharding, dense->shape(), rank),
                   pieces->data<std::byte>() + rank * bytes,
                   whole->mutableData<std::byte>(),
                   artifact::byteSize(dense->dtype()));
  return whole;
}

Result<Tensor> pieceOf(const Tensor &whole, const artifact::Sharding &sharding,
                       std::span<const int64_t> sizes,
                       const comm::MeshCommunicators *communicators) {
  comm::Shard shard =
      shardOf(communicators, sharding, sizes,
              communicators ? communicators->world().rank() : 0);
  if (!std::ranges::equal(whole.shape(), shard.whole))
    return Status::usage("expected " + describe(whole.dtype(), shard.whole) +
                         " but got " + describe(whole.dtype(), whole.shape()));
  if (shard.isWhole())
    return whole;
  Result<Tensor> dense = whole.dense();
  Result<Tensor> piece = Tensor::zeros(whole.dtype(), sizes);
  if (!dense || !piece)
    return dense ? piece : dense;
  comm::takePiece(shard, dense->data<std::byte>(),
                  piece->mutableData<std::byte>(),
                  artifact::byteSize(whole.dtype()));
  return piece;
}

} // namespace tandem::runtime
