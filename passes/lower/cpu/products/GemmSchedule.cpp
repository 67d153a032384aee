//===- GemmSchedule.cpp - how matrix products are cut ---------------------===//
#include "passes/lower/cpu/products/Gemm.h"
#include "passes/target/CpuCaches.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <queue>
#include <tuple>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::alignTo;
using llvm::divideCeil;

int64_t GemmSchedule::mBlocks(const Gemm &g) const {
  return divideCeil(g.M, mBlock);
}
int64_t GemmSchedule::panels(const Gemm &g) const {
  return divideCeil(g.N, width());
}
int64_t GemmSchedule::groups(const Gemm &g) const {
  return divideCeil(panels(g), group);
}
int64_t GemmSchedule::kBlocks(const Gemm &g) const {
  return std::max<int64_t>(1, divideCeil(g.K0, k0Block) *
                                  divideCeil(g.K1, k1Block));
}
int64_t GemmSchedule::kPanels(const Gemm &g) const {
  return std::max<int64_t>(1, divideCeil(g.K0, k0Panel) *
                                  divideCeil(g.K1, k1Panel));
}

int64_t GemmSchedule::lastTiles(const Gemm &g) const {
  return divideCeil(g.M - (mBlocks(g) - 1) * mBlock, rows);
}
int64_t GemmSchedule::roundsOfTile(const Gemm &g) const {
  int64_t last = g.K1 % k1Block;
  return (!sweeps ? g.K1 : last ? last : k1Block) / unroll;
}
int64_t GemmSchedule::packedByTile(const Gemm &g) const {
  return divideCeil(g.K1, lastTiles(g) * (sweeps ? kBlocks(g) : 1));
}

/// What a panel takes of the second-level cache.
static constexpr int64_t panelBytes = caches::kSecondOfWide;
/// The most rows of an item that packs panels for itself alone.
static constexpr int64_t rowsOfLongItem = 480;

int64_t lower::cpu::equalParts(int64_t size, int64_t most, int64_t unit) {
  int64_t parts =
      std::max<int64_t>(1, divideCeil(size, std::max<int64_t>(most, 1)));
  return std::max<int64_t>(unit, alignTo(divideCeil(size, parts), unit));
}

/// What a tile costs for each k, in 32nds of a cycle. In a cycle there are two
/// multiply-adds and two loads (of a row of B, and an element of A for each
/// row); a register of B comes from the second-level cache in three; a sum is
/// added to again after four. The elements of A come from further away.
static int64_t tileCost(int64_t rows, int64_t vectors) {
  if (rows == 0 || vectors == 0)
    return 0;
  constexpr int64_t operation = 16, latency = 4 * 32, fromCache = 3 * 32;
  return std::max({rows * vectors * operation, (rows + vectors) * operation,
                   vectors * fromCache, latency}) +
         4 * rows;
}

/// True if tiles of so many registers stay within panels that B is read from.
static bool fitsPanels(const GemmSchedule &s, const Gemm &g, int64_t vectors) {
  return g.panelColumns % (vectors * s.lanes) == 0;
}

/// Rows that are one item: cutRows does not cut fewer.
static constexpr int64_t rowsOfOneItem = 96;

/// What `whole` panels and a narrow one, if there is one, cost on the processor
/// that has most of them, where these are the items.
static int64_t costOfPanels(int64_t whole, int64_t cost, int64_t narrowCost,
                            int64_t processors) {
  int64_t panels = whole + (narrowCost > 0 ? 1 : 0);
  int64_t last = panels % processors; // in the last turn
  int64_t most = panels / processors * cost;
  if (last == 1 && narrowCost > 0)
    return most + narrowCost;
  return last > 0 ? most + cost : most;
}

/// The tile that is best for the sizes, whole tiles and what remains. Sums, one
/// row of B and one element of A are in registers; more than 8 rows of an A in
/// place would compete for the ways of the first-level cache.
static void chooseTile(GemmSchedule &s, const Gemm &g, const CpuModel &target,
                       int64_t batches) {
  int64_t across = std::max<int64_t>(1, divideCeil(g.N, s.lanes));
  int64_t best = 0;
  for (int64_t vectors = std::min<int64_t>(across, 8); vectors > 0; --vectors) {
    int64_t most = target.tileRows(vectors);
    if (most < 1 || !fitsPanels(s, g, vectors))
      continue;
    int64_t rows = equalParts(g.M, std::min<int64_t>(most, 8), 1);
    auto column = [&](int64_t width) {
      return g.M / rows * tileCost(rows, width) + tileCost(g.M % rows, width);
    };
    // Few panels are to be as many for each processor.
    int64_t cost =
        batches == 1 && g.M < rowsOfOneItem
            ? costOfPanels(across / vectors, column(vectors),
                           column(across % vectors), target.processors)
            : across / vectors * column(vectors) + column(across % vectors);
    if (best == 0 || cost < best) {
      best = cost;
      s.rows = rows;
      s.vectors = vectors;
    }
  }
}

/// The tile that is asked for, as far as the sizes reach.
static void askTile(GemmSchedule &s, const Gemm &g) {
  if (int64_t rows = g.asked[ScheduleKey::Rows])
    s.rows = std::min(rows, std::max<int64_t>(1, g.M));
  if (int64_t vectors = g.asked[ScheduleKey::Vectors];
      vectors && fitsPanels(s, g, vectors))
    s.vectors =
        std::min(vectors, std::max<int64_t>(1, divideCeil(g.N, s.lanes)));
}

/// Of a row of a panel.
static int64_t rowBytes(const GemmSchedule &s, const Gemm &g) {
  return s.width() * g.type.getIntOrFloatBitWidth() / 8;
}

/// Cuts k. Short sums keep f32 about as exact as blocked libraries are; a panel
/// stays in the second-level cache while the rows of A pass by.
static void cutK(GemmSchedule &s, const Gemm &g, int64_t bytes) {
  // By the product alone, so that no bit depends on how it is cut. What is
  // swept over again and again, a panel's part and A's, is to stay near.
  bool isSwept = g.fetch && !(g.packA && g.N > 4 * s.lanes);
  int64_t sumLength = isSwept ? 128 : 256;
  s.k1Block = equalParts(g.K1, sumLength, std::max(s.lanes, s.unroll));
  if (g.K1 <= s.k1Block)
    s.k1Block = std::max<int64_t>(1, g.K1);
  s.k0Block =
      s.k1Block < g.K1
          ? 1
          : equalParts(g.K0, std::max<int64_t>(1, sumLength / s.k1Block), 1);
  int64_t most = bytes / rowBytes(s, g);
  s.k0Panel = std::max<int64_t>(1, g.K0);
  s.k1Panel = std::max<int64_t>(1, g.K1);
  if (!s.packs || g.K0 * g.K1 <= most)
    return;
  if (g.K1 <= most) {
    s.k0Panel = equalParts(g.K0, most / g.K1, s.k0Block);
  } else {
    s.k0Panel = 1;
    s.k1Panel = equalParts(g.K1, most, s.k1Block);
  }
}

static int64_t panelSize(const GemmSchedule &s, const Gemm &g) {
  return s.k0Panel * s.k1Panel * rowBytes(s, g);
}

/// Panels that are cut along k share the item's rows of A.
static int64_t partsOfItem(const GemmSchedule &s, const Gemm &g,
                           const CpuModel &target, int64_t batches) {
  int64_t most = 4, leastItems = 3 * target.processors;
  int64_t blocks = batches * divideCeil(g.M, rowsOfLongItem);
  while (most > 1 &&
         blocks * static_cast<int64_t>(divideCeil(s.panels(g), most)) <
             leastItems)
    most /= 2;
  return equalParts(s.panels(g), most);
}

/// Panels share the item's rows of A where those are more than caches hold:
/// each group of panels reads all rows anew. Whole panels do, or parts of them
/// where they are long, which costs sums that wait.
static int64_t panelsOfItem(const GemmSchedule &s, const Gemm &g,
                            const CpuModel &target, int64_t batches) {
  if (g.K0 != 1)
    return 1;
  if (s.kPanels(g) > 1)
    return partsOfItem(s, g, target, batches);
  constexpr int64_t parts = 6;
  int64_t bytes = g.M * g.K1 * g.type.getIntOrFloatBitWidth() / 8;
  int64_t whole = panelBytes / 2 / panelSize(s, g);
  bool areWhole = whole >= std::min(parts, s.panels(g));
  if (bytes <= (areWhole ? 1 : 3) * caches::kPast)
    return 1;
  int64_t most = std::min(areWhole ? whole : parts, s.panels(g));
  int64_t leastItems = (areWhole ? 4 : 2) * target.processors;
  int64_t blocks = batches * divideCeil(g.M, 192);
  while (most > 1 &&
         blocks * static_cast<int64_t>(divideCeil(s.panels(g), most)) <
             leastItems)
    --most;
  return equalParts(s.panels(g), most);
}

/// What an item of a product whose rows of A are packed costs, in cycles:
/// multiply-adds, copies of both factors, and what each run of a row's results
/// waits for, of those that an end reads too.
static int64_t costOfItem(const GemmSchedule &s, const Gemm &g, int64_t rows,
                          int64_t columns, bool packsPanels) {
  constexpr int64_t bytesInCycle = 4, runBegins = 64;
  int64_t bytes = g.type.getIntOrFloatBitWidth() / 8;
  int64_t products = rows * columns / (2 * s.lanes);
  int64_t copied = rows + (packsPanels ? columns : 0);
  int64_t runs = rows * (s.sumsInResult ? s.kBlocks(g) : g.store ? 1 : 2);
  return g.K1 * (products + copied * bytes / bytesInCycle) + runs * runBegins;
}

/// What the items cost on the processor that has most to do, if each takes the
/// next one when it has finished one.
static int64_t costOfItems(const GemmSchedule &s, const Gemm &g,
                           const CpuModel &target, int64_t batches) {
  // What each processor has done, its number, and its last group of panels.
  using Processor = std::tuple<int64_t, int64_t, int64_t>;
  std::priority_queue<Processor, std::vector<Processor>, std::greater<>> next;
  for (int64_t number = 0; number < target.processors; ++number)
    next.push({0, number, -1});
  int64_t blocks = s.mBlocks(g), width = s.group * s.width(), cost = 0;
  // More of them are as even.
  batches = std::min(batches, 2 * target.processors);
  for (int64_t group = 0; group < batches * s.groups(g); ++group) {
    int64_t columns = std::min(width, g.N - group % s.groups(g) * width);
    for (int64_t block = 0; block < blocks; ++block) {
      auto [done, number, panels] = next.top();
      next.pop();
      int64_t rows = std::min(s.mBlock, g.M - block * s.mBlock);
      bool packsPanels = s.sweeps || panels != group;
      done += costOfItem(s, g, rows, columns, packsPanels);
      next.push({done, number, group});
      cost = std::max(cost, done);
    }
  }
  return cost;
}

/// Cuts a product whose rows of A are packed, which many panels share, so that
/// its items cost least. For each short sum some of the item's rows are packed
/// at one time, and all of its panels: both are used before they have left the
/// second-level cache.
static void cutPackedRows(GemmSchedule &s, const Gemm &g,
                          const CpuModel &target, int64_t batches) {
  constexpr int64_t leastRows = 96, mostRows = 1032;
  constexpr int64_t mostSums = 2064 << 10;
  int64_t mostPanels =
      std::max<int64_t>(1, panelBytes / (s.k1Block * rowBytes(s, g)));
  GemmSchedule cut = s;
  std::optional<int64_t> least;
  auto tryRows = [&](int64_t rows) {
    cut.mBlock = rows;
    if (s.sweeps && !s.sumsInResult &&
        rows * cut.group * rowBytes(s, g) > mostSums)
      return;
    int64_t cost = costOfItems(cut, g, target, batches);
    if (least && cost > *least)
      return;
    least = cost;
    s = cut;
  };
  for (int64_t panels = std::min(mostPanels, s.panels(g)); panels > 0;) {
    cut.group = equalParts(s.panels(g), panels);
    int64_t fewest = divideCeil(g.M, mostRows);
    int64_t most = fewest + 4 * target.processors;
    for (int64_t blocks = fewest; blocks <= most; ++blocks) {
      int64_t rows = equalParts(g.M, divideCeil(g.M, blocks), s.rows);
      if (rows < leastRows && blocks > fewest)
        break;
      tryRows(rows);
    }
    panels = cut.group - 1;
  }
}

/// The rows of A that are packed at one time.
static int64_t rowsNear(const GemmSchedule &s, const Gemm &g) {
  constexpr int64_t nearBytes = 288 << 10;
  int64_t bytes = g.type.getIntOrFloatBitWidth() / 8;
  return equalParts(s.mBlock, nearBytes / (s.k1Block * bytes), s.rows);
}

/// Cuts m. Rows that are swept are asked for ahead but for those with which an
/// item begins, so that its items are no more than keep the processors busy.
static void cutRows(GemmSchedule &s, const Gemm &g, const CpuModel &target,
                    int64_t batches) {
  // Items that share a panel may be short. Each of several panels along k is
  // packed for every item.
  bool isShared = s.kPanels(g) == 1;
  s.mBlock = equalParts(g.M, isShared ? 192 : rowsOfLongItem, s.rows);
  double k = static_cast<double>(g.K0) * g.K1;
  constexpr double enoughFlops = 4e6;
  int64_t leastRows = isShared ? 48 : 192;
  int64_t enoughItems = !isShared ? 16 : s.sweeps ? 8 * target.processors : 64;
  while (batches * s.items(g) < enoughItems && s.mBlock >= 2 * leastRows &&
         2.0 * s.mBlock * s.width() * k > enoughFlops)
    s.mBlock = alignTo(divideCeil(s.mBlock, 2), s.rows);
  // Each processor has as many of a few items.
  int64_t most = s.mBlocks(g) + target.processors;
  for (int64_t blocks = s.mBlocks(g); blocks < most; ++blocks) {
    int64_t rows = equalParts(g.M, divideCeil(g.M, blocks), s.rows);
    int64_t items = batches * s.groups(g) * divideCeil(g.M, rows);
    if (items > 4 * target.processors || rows < leastRows)
      break;
    if (items % target.processors == 0) {
      s.mBlock = rows;
      break;
    }
  }
}

/// A panel is packed during the last item of the one before it, if that takes
/// long enough.
static void packAhead(GemmSchedule &s, const Gemm &g) {
  if (!s.packs || !g.packRow || g.K0 != 1 || s.kPanels(g) > 1 ||
      s.groups(g) == 1)
    return;
  // Two groups share the second-level cache.
  if (s.group * panelSize(s, g) > panelBytes / 2)
    return;
  int64_t rowsOfTile = s.packedByTile(g);
  if (s.roundsOfTile(g) >= rowsOfTile)
    s.packsEvery = llvm::bit_floor<uint64_t>(s.roundsOfTile(g) / rowsOfTile);
}

/// Panels of an item that are asked for, as many as can share its rows of A.
static int64_t askedPanels(const GemmSchedule &s, const Gemm &g) {
  bool canShare = s.packsA || g.K0 == 1;
  int64_t most = canShare ? std::max<int64_t>(1, s.panels(g)) : 1;
  return std::clamp<int64_t>(g.asked[ScheduleKey::Columns] / s.width(), 1,
                             most);
}

GemmSchedule lower::cpu::scheduleGemm(const Gemm &g, const CpuModel &target,
                                      int64_t batches) {
  using enum ScheduleKey;
  // Of a whole schedule no number is the model's.
  const bool isWhole = g.asked.hasAll({Rows, Vectors, Block, Columns, Packs});
  GemmSchedule s;
  s.lanes = target.lanes(g.type);
  if (!g.asked.hasAll({Rows, Vectors}))
    chooseTile(s, g, target, batches);
  askTile(s, g);
  // Packing is paid back by the tiles that use the panel.
  constexpr int64_t fewTiles = 4;
  s.packs = !g.b || (!g.isPacked && g.M > fewTiles * s.rows);
  if (g.asked.has(Packs))
    s.packs = !g.b || g.asked[Packs];
  s.packsA = s.packs && g.packA && s.panels(g) > 1;
  cutK(s, g, panelBytes);
  if (s.packsA) {
    // Sums wait in the result, or in scratch.
    s.sweeps = s.kBlocks(g) > 1;
    s.sumsInResult = s.sweeps && g.load;
    s.k1Panel = s.k1Block;
    if (!isWhole)
      cutPackedRows(s, g, target, batches);
    if (g.asked.has(Columns))
      s.group = askedPanels(s, g);
  } else {
    s.group = g.asked.has(Columns) ? askedPanels(s, g)
                                   : panelsOfItem(s, g, target, batches);
    if (s.kPanels(g) > 1 || s.group * panelSize(s, g) > panelBytes)
      cutK(s, g, panelBytes / s.group);
    s.sweeps = s.kBlocks(g) > 1 && (g.fetch || s.kPanels(g) > 1);
    if (!isWhole)
      cutRows(s, g, target, batches);
  }
  if (isWhole) // as it stands, if it is whole tiles
    s.mBlock = std::min<int64_t>(alignTo(g.asked[Block], s.rows),
                                 alignTo(std::max<int64_t>(1, g.M), s.rows));
  else if (g.asked.has(Block))
    s.mBlock = equalParts(g.M, g.asked[Block], s.rows);
  if (s.packsA)
    s.rowsNear = rowsNear(s, g);
  packAhead(s, g);
  return s;
}

ScheduleOverride GemmSchedule::numbers() const {
  using enum ScheduleKey;
  return ScheduleOverride({{Rows, rows},
                           {Vectors, vectors},
                           {Block, mBlock},
                           {Columns, group * width()},
                           {Packs, packs}});
}
