//===- Shard.cpp - the piece of a value that a rank has -------------------===//
#include "runtime/comm/Shard.h"

#include <algorithm>
#include <cstring>

namespace tandem::comm {

using artifact::MeshAxis;

namespace {

/// The coordinate of a rank on an axis, and the axis' size.
struct Coordinate {
  int64_t at = 0, size = 1;
};

Coordinate coordinateOf(const Mesh &mesh, std::string_view name, int64_t rank) {
  for (auto axis = mesh.rbegin(); axis != mesh.rend(); ++axis) {
    if (axis->name == name)
      return {rank % axis->size, axis->size};
    rank /= axis->size;
  }
  return {};
}

} // namespace

int64_t ranksOf(const Mesh &mesh) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

int64_t placeIn(const Mesh &mesh, std::span<const std::string> axes,
                int64_t rank) {
  int64_t place = 0;
  for (const std::string &name : axes) {
    Coordinate coordinate = coordinateOf(mesh, name, rank);
    place = place * coordinate.size + coordinate.at;
  }
  return place;
}

std::string toString(const Mesh &mesh) {
  std::string text;
  for (const MeshAxis &axis : mesh)
    text += (text.empty() ? "" : ", ") + axis.name + "=" +
            std::to_string(axis.size);
  return text;
}

Shard allOf(std::span<const int64_t> sizes) {
  Shard shard;
  shard.sizes.assign(sizes.begin(), sizes.end());
  shard.whole = shard.sizes;
  shard.begins.assign(sizes.size(), 0);
  return shard;
}

Shard shardOf(const Mesh &mesh, const artifact::Value &value, int64_t rank) {
  Shard shard = allOf(value.shape);
  const artifact::Sharding &sharding = value.sharding;
  for (size_t d = 0; d < std::min(sharding.size(), shard.sizes.size()); ++d) {
    int64_t pieces = 1;
    for (const std::string &name : sharding[d])
      pieces *= coordinateOf(mesh, name, 0).size;
    shard.whole[d] =
        d < value.whole.size() ? value.whole[d] : shard.sizes[d] * pieces;
    shard.begins[d] = shard.sizes[d] * placeIn(mesh, sharding[d], rank);
  }
  return shard;
}

Held heldBy(const MeshRank &rank, const artifact::Value &value, size_t d) {
  int64_t size = value.shape[d], begin = 0;
  if (d < value.sharding.size())
    begin = size * placeIn(rank.mesh, value.sharding[d], rank.rank);
  int64_t end = d < value.whole.size() ? value.whole[d] : begin + size;
  return {begin, std::clamp<int64_t>(end - begin, 0, size)};
}

Places::Places(const Shard &shard) : shard(shard), index(shard.sizes.size()) {
  // Elements of the last dimension lie together.
  length = shard.sizes.empty() ? 1 : shard.sizes.back();
  locate();
}

void Places::locate() {
  first = 0;
  held = index.empty() ? 1 : shard.held(index.size() - 1);
  for (size_t d = 0; d < index.size(); ++d) {
    first = first * shard.whole[d] + shard.begins[d] + index[d];
    if (index[d] >= shard.held(d))
      held = 0;
  }
}

void Places::advance() {
  for (size_t d = index.size(); d-- > 1;) {
    if (++index[d - 1] < shard.sizes[d - 1])
      break;
    index[d - 1] = 0;
  }
  locate();
}

namespace {

/// Calls `one(inWhole, inPiece, count)` for each run of elements that lie
/// together in both, from dimension `d` on; the indices of those in front have
/// made the places.
template <typename Fn>
void forRuns(const Shard &shard, const Fn &one, size_t d = 0,
             int64_t inWhole = 0, int64_t inPiece = 0) {
  if (shard.sizes.empty())
    return one(0, 0, 1);
  inWhole = inWhole * shard.whole[d] + shard.begins[d];
  inPiece *= shard.sizes[d];
  int64_t count = shard.held(d);
  if (d + 1 < shard.sizes.size())
    for (int64_t i = 0; i < count; ++i)
      forRuns(shard, one, d + 1, inWhole + i, inPiece + i);
  else if (count > 0)
    one(inWhole, inPiece, count);
}

} // namespace

void takePiece(const Shard &shard, const std::byte *whole, std::byte *piece,
               int64_t elementBytes) {
  forRuns(shard, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(piece + to * elementBytes, whole + from * elementBytes,
                size_t(count * elementBytes));
  });
}

void putPiece(const Shard &shard, const std::byte *piece, std::byte *whole,
              int64_t elementBytes) {
  forRuns(shard, [&](int64_t to, int64_t from, int64_t count) {
    std::memcpy(whole + to * elementBytes, piece + from * elementBytes,
                size_t(count * elementBytes));
  });
}

} // namespace tandem::comm
