//===- WarpTile.h - tiles that warps multiply by mma.sync -------*- C++ -*-===//
//
// Warps share a tile of C, each one has blocks of 16 rows and 8 columns of it.
// What a step of k is, and how its registers are loaded, is for the type of the
// factors to say.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_WARPTILE_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_WARPTILE_H

#include "passes/lower/cuda/products/GemmTile.h"

namespace tandem::lower::cuda {

class WarpTile : public GemmTile {
public:
  Values multiply(Value aTiles, Value aAt, Value bTiles, Value bAt,
                  mlir::ValueRange sums) final;

protected:
  /// `step` is the k of an mma. Tiles of factors are for the type to lay out.
  WarpTile(ThreadCode &code, const GemmSchedule &schedule, int64_t step,
           mlir::Type sum);

  /// A factor's registers: four, of 16 lines by one step of k. Of A they are
  /// (lines, k), (lines + 8, k), (lines, k + half), (lines + 8, k + half); of
  /// B, whose mma has 8 columns, the middle ones change places.
  virtual Values fragments(const TileLayout &layout, bool isB, Value tiles,
                           Value at, Value line, int64_t k) = 0;
  virtual Value multiplyAdd(mlir::ValueRange a, mlir::ValueRange b,
                            Value sum) = 0;

  /// A tile whose rows are as the factor's, without padding.
  TileLayout layoutOf(const GemmFactor &factor, mlir::Type element,
                      int64_t lines) const;
  /// Where the warp's part of C begins.
  Value warpRow();
  Value warpColumn();

  const int64_t step;
  const int64_t rows, columns; ///< blocks of 16 x 8 sums of a warp
};

} // namespace tandem::lower::cuda

#endif
