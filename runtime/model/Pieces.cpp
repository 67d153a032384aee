//===- Pieces.cpp - values that several ranks have together ---------------===//
#include "runtime/model/Pieces.h"

#include <algorithm>

namespace tandem::runtime {

artifact::Manifest wholeManifest(const artifact::Manifest &manifest) {
  using artifact::Role;
  artifact::Manifest whole = manifest;
  auto widen = [&](std::vector<int64_t> &shape, const artifact::Value *value) {
    if (value)
      shape = comm::shardOf(manifest.mesh, *value, 0).whole;
  };
  for (size_t i = 0; i < whole.values.size(); ++i)
    widen(whole.values[i].shape, &manifest.values[i]);
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

Result<Tensor> wholeOf(const Tensor &piece, const artifact::Value *value,
                       const comm::MeshCommunicators *communicators) {
  Result<Tensor> host = piece.onHost();
  if (!host || !value || !communicators)
    return host;
  comm::Shard own = comm::shardOf(communicators->mesh(), *value, 0);
  // Of one row the first rank has all, and others begin behind it.
  int last = communicators->world().ranks() - 1;
  comm::Shard ofLast = comm::shardOf(communicators->mesh(), *value, last);
  if (own.isWhole() && ofLast.begins == own.begins)
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
    comm::putPiece(comm::shardOf(communicators->mesh(), *value, rank),
                   pieces->data<std::byte>() + rank * bytes,
                   whole->mutableData<std::byte>(),
                   artifact::byteSize(dense->dtype()));
  return whole;
}

Result<Tensor> pieceOf(const Tensor &whole, const artifact::Value &value,
                       const comm::MeshCommunicators *communicators) {
  comm::Shard shard = communicators
                          ? comm::shardOf(communicators->mesh(), value,
                                          communicators->world().rank())
                          : comm::allOf(value.shape);
  if (!std::ranges::equal(whole.shape(), shard.whole))
    return Status::usage("expected " + describe(whole.dtype(), shard.whole) +
                         " but got " + describe(whole.dtype(), whole.shape()));
  if (shard.isWhole())
    return whole;
  Result<Tensor> dense = whole.dense();
  Result<Tensor> piece = Tensor::zeros(whole.dtype(), shard.sizes);
  if (!dense || !piece)
    return dense ? piece : dense;
  comm::takePiece(shard, dense->data<std::byte>(),
                  piece->mutableData<std::byte>(),
                  artifact::byteSize(whole.dtype()));
  return piece;
}

} // namespace tandem::runtime
