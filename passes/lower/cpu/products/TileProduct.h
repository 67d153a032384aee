//===- TileProduct.h - matrix products of bf16 by tiles -------------------===//
//
// Products of bf16 with sums in f32 on processors that have tiles (TileCode.h),
// or an instruction for pairs, with which a block of sums is some tiles in a
// row. The item of work is a block of rows times a group of panels of columns:
// the panels' tiles are packed into scratch, so are those of the rows where
// they cannot be read in place, and blocks of 2 x 2 tiles of sums run along k.
// A sum is made in the order of k, 32 terms at a time, in whatever way the
// product is cut: between two parts it rests in scratch.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_TILEPRODUCT_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_TILEPRODUCT_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Method.h"
#include "passes/lower/common/ScheduleOverride.h"

namespace tandem::lower::cpu {

using namespace lower;

/// How a product of tiles is cut.
struct TileSchedule {
  /// A block of sums, in tiles.
  struct Block {
    int64_t rows = 1, columns = 1;
  };
  /// That of a processor's own tiles.
  static Block blockOf(int64_t M, int64_t N);

  int64_t rows = 2, columns = 2; ///< of a block of sums
  /// Steps of 32 k that a block is summed over at one time, while a panel's
  /// tiles stay in the first-level cache; and that are packed at one time.
  int64_t part = 0, panelSteps = 0;
  int64_t group = 1;    ///< panels of an item
  int64_t mBlock = 0;   ///< rows of an item, whole blocks
  int64_t rowsNear = 0; ///< of these, how many are packed at one time
  bool packsLeft = true;

  int64_t height() const;
  int64_t width() const;
};

/// Chooses the schedule of one of `batches` equal products, [M, K] by [K, N],
/// with items of what is asked for.
TileSchedule scheduleTiles(int64_t M, int64_t N, int64_t K, int64_t batches,
                           TileSchedule::Block block, bool leftIsInPlace,
                           const ScheduleOverride &asked);

/// The row of this method (Methods.cpp).
Fit fitTileProduct(AnchorKernel &kernel);
double secondsOfTileProduct(AnchorKernel &kernel);
int64_t scratchOfTileProduct(AnchorKernel &kernel);
ScheduleOverride cutTileProduct(AnchorKernel &kernel);
mlir::FailureOr<Work> emitTileProduct(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
