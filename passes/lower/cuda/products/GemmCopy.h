//===- GemmCopy.h - a factor's tiles on their way to shared memory --------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMCOPY_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMCOPY_H

#include "passes/lower/cuda/products/GemmTile.h"

namespace tandem::lower::cuda {

/// All threads of a block fetch a tile, a number of pieces each. Pieces of 16
/// bytes that keep their form are copied asynchronously; others pass through
/// registers: `fetch` begins to load them, `put` stores them.
class GemmCopy {
public:
  using Value = mlir::Value;
  using Values = ThreadCode::Values;

  /// Of a product with `lines` lines (M or N) and `K` k.
  GemmCopy(ThreadCode &code, GemmFactor &factor, const TileLayout &layout,
           int64_t lines, int64_t K, int64_t threads);

  bool isAsync() const { return async; }
  /// Begins to fetch the tile at (line, k) to `at` of `tiles`.
  Values fetch(Value line, Value k, Value tiles, Value at);
  /// Stores what was fetched.
  void put(mlir::ValueRange fetched, Value tiles, Value at);

private:
  struct Piece {
    Value line, k; ///< in the tile
    Value inTile;  ///< i1; null for always
  };
  Piece piece(int64_t number);
  /// How many elements of the piece at (line, k) are inside the factor, if its
  /// first is: an index. Null for all.
  Value present(Value line, Value k);
  Value load(const Piece &piece, Value line, Value k, Value inside);
  void store(Value values, const Piece &piece, Value tiles, Value at);

  ThreadCode &code;
  GemmFactor &factor;
  const TileLayout &layout;
  int64_t lines, K, threads;
  int64_t vector; ///< elements of a piece
  int64_t pieces; ///< of a thread
  bool async;
};

} // namespace tandem::lower::cuda

#endif
