//===- Shard.h - the piece of a value that a rank has ---------------------===//
//
// A value that is cut over axes of the mesh has pieces of one size; where axes
// are not among its own, several ranks have the same piece. A piece is a block
// of the whole: a range in each dimension. Where a dimension does not divide,
// the last pieces reach beyond its end: elements there are padding, which
// belongs to no value, and a rank may have nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_COMM_SHARD_H
#define TANDEM_RUNTIME_COMM_SHARD_H

#include "runtime/artifact/Manifest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

using Mesh = std::vector<artifact::MeshAxis>;

/// Returns the number of ranks; 1 without axes.
int64_t ranksOf(const Mesh &mesh);
/// Returns where `rank` is among those that differ from it in `axes` alone, in
/// row-major order over the axes as they are listed.
int64_t placeIn(const Mesh &mesh, std::span<const std::string> axes,
                int64_t rank);
/// Returns "data=4, tensor=2".
std::string toString(const Mesh &mesh);

struct Shard {
  std::vector<int64_t> whole;  ///< sizes of the value
  std::vector<int64_t> sizes;  ///< of the piece
  std::vector<int64_t> begins; ///< where it begins in each dimension

  /// True if the piece is the whole.
  bool isWhole() const { return whole == sizes; }
  /// How many indices of dimension `d` the piece has that are no padding.
  int64_t held(size_t d) const {
    return std::clamp<int64_t>(whole[d] - begins[d], 0, sizes[d]);
  }
};

/// Returns what `rank` has of a value whose pieces have the shape that `value`
/// says.
Shard shardOf(const Mesh &mesh, const artifact::Value &value, int64_t rank);
/// A rank of a mesh.
struct MeshRank {
  const Mesh &mesh;
  int64_t rank;
};
/// Indices of a dimension, from `begin` on.
struct Held {
  int64_t begin, count;
};
/// Returns those that the rank's piece has in dimension `d` of a value and that
/// are no padding. Allocates nothing.
Held heldBy(const MeshRank &rank, const artifact::Value &value, size_t d);
/// Returns all of a value of one process.
Shard allOf(std::span<const int64_t> sizes);

/// Copies the piece out of the whole, or into it; both row-major. Padding is
/// neither read nor written.
void takePiece(const Shard &shard, const std::byte *whole, std::byte *piece,
               int64_t elementBytes);
void putPiece(const Shard &shard, const std::byte *piece, std::byte *whole,
              int64_t elementBytes);

/// Gives the places in the whole of a piece's elements, in its order.
class Places {
public:
  explicit Places(const Shard &shard);
  /// Returns the place of the next element; -1 for padding.
  int64_t next() {
    if (run == length) {
      run = 0;
      advance();
    }
    return run++ < held ? first + run - 1 : -1;
  }

private:
  void advance();
  void locate();
  const Shard &shard;
  std::vector<int64_t> index;
  int64_t first = 0, run = 0, length = 1, held = 1;
};

} // namespace tandem::comm

#endif
