//===- WarpTile.cpp - tiles that warps multiply by mma.sync ---------------===//
#include "passes/lower/cuda/products/WarpTile.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

WarpTile::WarpTile(ThreadCode &code, const GemmSchedule &schedule, int64_t step,
                   Type sum)
    : GemmTile(code, schedule), step(step), rows(schedule.warpM() / 16),
      columns(schedule.warpN() / 8) {
  sums = rows * columns;
  sumType = VectorType::get({4}, sum);
}

TileLayout WarpTile::layoutOf(const GemmFactor &factor, Type element,
                              int64_t lines) const {
  TileLayout layout{element, lines, schedule.blockK, factor.alongK};
  layout.pitch = factor.alongK ? schedule.blockK : lines;
  return layout;
}

Value WarpTile::warpRow() {
  return code.mul(code.div(code.warp(), schedule.warpsN), schedule.warpM());
}

Value WarpTile::warpColumn() {
  return code.mul(code.rem(code.warp(), schedule.warpsN), schedule.warpN());
}

GemmTile::Values WarpTile::multiply(Value aTiles, Value aAt, Value bTiles,
                                    Value bAt, ValueRange before) {
  Values result(before);
  for (int64_t k = 0; k < schedule.blockK; k += step) {
    SmallVector<Values> x, y;
    for (int64_t i = 0; i < rows; ++i)
      x.push_back(
          fragments(a, false, aTiles, aAt, code.add(warpRow(), i * 16), k));
    for (int64_t j = 0; j < columns / 2; ++j)
      y.push_back(
          fragments(b, true, bTiles, bAt, code.add(warpColumn(), j * 16), k));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Value &sum = result[i * columns + j];
        sum = multiplyAdd(x[i], ValueRange(y[j / 2]).slice(j % 2 * 2, 2), sum);
      }
  }
  return result;
}
