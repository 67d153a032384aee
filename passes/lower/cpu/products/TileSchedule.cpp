//===- TileSchedule.cpp - how products of tiles are cut -------------------===//
#include "passes/lower/cpu/products/Gemm.h"
#include "passes/lower/cpu/products/TileCode.h"
#include "passes/lower/cpu/products/TileProduct.h"
#include "passes/target/CpuCaches.h"

#include "llvm/Support/MathExtras.h"

using namespace tandem;
using namespace tandem::lower::cpu;
using llvm::alignTo;
using llvm::divideCeil;

int64_t TileSchedule::height() const { return rows * TileCode::lines; }
int64_t TileSchedule::width() const { return columns * TileCode::lines; }

// Of 8 registers, 4 hold sums, and at most 4 factors: each of 2 x 2 is used
// twice. Sums that nobody asks for are not made.
TileSchedule::Block TileSchedule::blockOf(int64_t M, int64_t N) {
  int64_t down = divideCeil(M, TileCode::lines);
  int64_t across = divideCeil(N, TileCode::lines);
  return {down == 1     ? 1
          : across == 1 ? std::min<int64_t>(down, 4)
                        : 2,
          across == 1 ? 1
          : down == 1 ? std::min<int64_t>(across, 4)
                      : 2};
}

TileSchedule lower::cpu::scheduleTiles(int64_t M, int64_t N, int64_t K,
                                       int64_t batches,
                                       TileSchedule::Block ofSums,
                                       bool leftIsInPlace,
                                       const ScheduleOverride &asked) {
  TileSchedule s;
  int64_t across = divideCeil(N, TileCode::lines);
  s.rows = ofSums.rows;
  s.columns = ofSums.columns;
  s.packsLeft = !leftIsInPlace;

  // While the rows' tiles pass by, a panel stays in the first-level cache, and
  // a group in the second-level one.
  constexpr int64_t panelBytes = caches::kFirstWithTiles * 5 / 6,
                    groupBytes = caches::kSecondOfWide;
  constexpr int64_t tileBytes = TileCode::lines * TileCode::rowBytes;
  int64_t steps = divideCeil(K, TileCode::terms);
  int64_t leastPanels =
      std::min<int64_t>(divideCeil(across, s.columns), 256 / s.width());
  s.panelSteps =
      equalParts(steps, groupBytes / (tileBytes * s.columns * leastPanels));
  s.part = equalParts(s.panelSteps, panelBytes / (tileBytes * s.columns));
  int64_t panels = divideCeil(across, s.columns);
  s.group =
      equalParts(panels, groupBytes / (tileBytes * s.columns * s.panelSteps));

  // Of several panels along k each is packed for every item, so items are long.
  bool isShared = s.panelSteps >= steps;
  constexpr int64_t rowsAtOnce = 128, rowsOfLongItem = 512;
  s.rowsNear = equalParts(M, rowsAtOnce, s.height());
  s.mBlock = isShared ? s.rowsNear : equalParts(M, rowsOfLongItem, s.rowsNear);

  // The memory of an item stays small.
  constexpr int64_t mostRows = 4096, mostColumns = 4096;
  int64_t block = asked[ScheduleKey::Block];
  int64_t columnsOfItem = asked[ScheduleKey::Columns];
  if (block && columnsOfItem) { // whole: as it stands, if it is whole blocks
    s.mBlock = std::min<int64_t>(alignTo(block, s.height()),
                                 alignTo(std::max<int64_t>(M, 1), s.rowsNear));
    s.group = std::clamp<int64_t>(columnsOfItem / s.width(), 1, panels);
  } else if (block) {
    s.mBlock = equalParts(M, std::min(block, mostRows), s.height());
  } else if (columnsOfItem) {
    s.group =
        equalParts(panels, std::min(columnsOfItem, mostColumns) / s.width());
  }

  // Enough for some threads: first groups, which share no panel; then rows.
  auto items = [&] {
    return batches * static_cast<int64_t>(divideCeil(panels, s.group)) *
           static_cast<int64_t>(divideCeil(M, s.mBlock));
  };
  constexpr int64_t enough = 16, leastColumns = 256, leastRows = 64;
  while (!columnsOfItem && items() < enough &&
         s.group * s.width() >= 2 * leastColumns)
    s.group = divideCeil(s.group, 2);
  while (!block && items() < enough && s.mBlock >= 2 * leastRows)
    s.mBlock = alignTo(divideCeil(s.mBlock, 2), s.height());
  s.rowsNear = std::min(s.rowsNear, s.mBlock);
  return s;
}
