//===- Shard.h - the piece of a value that a rank has ---------------------===//
//
// A value that is cut over axes of the mesh has equal pieces; where axes are
// not among its own, several ranks have the same piece. A piece is a block of
// the whole: a range in each dimension.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_COMM_SHARD_H
#define TANDEM_RUNTIME_COMM_SHARD_H

#include "runtime/artifact/Manifest.h"

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
};

/// Returns what `rank` has of a value whose pieces have these sizes. An empty
/// sharding: everything.
Shard shardOf(const Mesh &mesh, const artifact::Sharding &sharding,
              std::span<const int64_t> sizes, int64_t rank);

/// Copies the piece out of the whole, or into it; both row-major.
void takePiece(const Shard &shard, const std::byte *whole, std::byte *piece,
               int64_t elementBytes);
void putPiece(const Shard &shard, const std::byte *piece, std::byte *whole,
              int64_t elementBytes);

/// Gives the places in the whole of a piece's elements, in its order.
class Places {
public:
  explicit Places(const Shard &shard);
  /// Returns the place of the next element.
  int64_t next() {
    if (run == length) {
      run = 0;
      advance();
    }
    return first + run++;
  }

  /// Returns the place of the next elements, which lie together: as many as the
  /// last dimension of the piece has.
  int64_t nextRun() {
    int64_t at = next();
    run = length;
    return at;
  }

private:
  void advance();
  const Shard &shard;
  std::vector<int64_t> index;
  int64_t first = 0, run = 0, length = 1;
};

} // namespace tandem::comm

#endif
