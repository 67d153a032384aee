//===- GemmSchedule.cpp - how products are cut ----------------------------===//
//
// A table of tiles, and an estimate of the time that each would take: blocks go
// to the multiprocessors in waves, a multiprocessor multiplies at a rate that
// the tile can feed, and splitting k costs memory traffic and a start. k is cut
// into any number of parts, so that blocks fill their waves: 18 tiles in 7
// parts are 126 blocks. The estimate only has to rank; ties go to the larger
// tile.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/products/GemmWgmma.h"
#include "passes/plan/LoopNest.h"
#include "passes/target/CudaModel.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
/// A tile, and how much of a multiprocessor's rate it reaches with enough
/// blocks: the smaller the tile, the more bytes from shared memory for each
/// product, 1/warpM + 1/warpN of them.
struct Candidate {
  int64_t blockM, blockN, blockK, warpsM, warpsN;
  double rate;
};

// Warps of 32 x 64 sums keep 64 of f32 in each thread's registers; with two
// k of both factors, addresses and what is on its way a thread stays below 128
// registers: two blocks of 256 threads fit in a multiprocessor. A piece of 8 k
// is a multiprocessor's work for 1,000 cycles, more than a load takes.
constexpr Candidate f32Tiles[] = {
    {128, 128, 8, 4, 2, 1.0}, {64, 128, 8, 2, 2, 0.85},
    {128, 64, 8, 4, 1, 0.85}, {64, 64, 16, 2, 2, 0.7},
    {32, 64, 16, 2, 2, 0.5},  {32, 32, 16, 2, 1, 0.4},
    {16, 128, 16, 1, 4, 0.35}};
// A register pair for each sum: half as many.
constexpr Candidate f64Tiles[] = {{64, 64, 8, 4, 2, 1.0},
                                  {32, 32, 16, 2, 2, 0.7},
                                  {16, 16, 16, 2, 1, 0.4},
                                  {8, 64, 16, 1, 4, 0.35}};
// Tensor cores. Warps of 64 x 64 sums read 4 KiB of shared memory for 64 x 64 x
// 16 products, what a multiprocessor's quarter delivers while its tensor core
// multiplies; they keep 128 sums in each thread, of about 200 registers: two
// blocks of 4 warps fit. 32 k are 16 KiB for a stage of 128 x 128: with 4
// stages 48 KiB are on their way for each block, which covers L2's latency.
constexpr Candidate halfTiles[] = {
    {128, 256, 32, 2, 4, 1.05}, {128, 128, 32, 2, 2, 1.0},
    {64, 128, 32, 2, 2, 0.8},   {128, 64, 32, 2, 2, 0.8},
    {64, 64, 64, 2, 2, 0.6},    {32, 64, 64, 2, 2, 0.4},
    {32, 32, 64, 2, 1, 0.3},    {16, 128, 64, 1, 4, 0.3},
    {16, 32, 64, 1, 2, 0.2}};
// Where a factor passes through registers in small pieces: twice the threads,
// so that each has few pieces on its way.
constexpr Candidate halfGathers[] = {
    {128, 128, 32, 2, 4, 1.0}, {64, 128, 32, 2, 4, 0.8},
    {128, 64, 32, 4, 2, 0.8},  {64, 64, 32, 2, 4, 0.6},
    {32, 64, 32, 2, 4, 0.4},   {32, 32, 32, 2, 2, 0.3},
    {16, 128, 32, 1, 8, 0.3},  {16, 32, 32, 1, 2, 0.2}};
constexpr Candidate tf32Gathers[] = {
    {128, 128, 16, 2, 4, 1.0}, {64, 128, 16, 2, 4, 0.8},
    {128, 64, 16, 4, 2, 0.8},  {64, 64, 16, 2, 4, 0.6},
    {32, 64, 16, 2, 4, 0.4},   {32, 32, 16, 2, 2, 0.3},
    {16, 128, 16, 1, 8, 0.3},  {16, 32, 16, 1, 2, 0.2}};
// The same bytes, half the k.
constexpr Candidate tf32Tiles[] = {
    {128, 128, 16, 2, 2, 1.0}, {64, 128, 16, 2, 2, 0.8},
    {128, 64, 16, 2, 2, 0.8},  {64, 64, 32, 2, 2, 0.6},
    {32, 64, 32, 2, 2, 0.4},   {32, 32, 32, 2, 1, 0.3},
    {16, 128, 32, 1, 4, 0.3},  {16, 32, 32, 1, 2, 0.2}};
// Of 8 bits the same bytes, too.
constexpr Candidate byteTiles[] = {
    {128, 256, 64, 2, 4, 1.05}, {128, 128, 64, 2, 2, 1.0},
    {64, 128, 64, 2, 2, 0.8},   {128, 64, 64, 2, 2, 0.8},
    {64, 64, 128, 2, 2, 0.6},   {32, 64, 128, 2, 2, 0.4},
    {32, 32, 128, 2, 1, 0.3},   {16, 128, 128, 1, 4, 0.3},
    {16, 32, 128, 1, 2, 0.2}};
// Registers on the way of a factor that is turned leave no room for 128 sums.
constexpr Candidate byteTurns[] = {
    {128, 128, 64, 2, 4, 1.0}, {64, 128, 64, 2, 2, 0.8},
    {128, 64, 64, 2, 2, 0.8},  {64, 64, 128, 2, 2, 0.6},
    {32, 64, 128, 2, 2, 0.4},  {32, 32, 128, 2, 1, 0.3},
    {16, 128, 128, 1, 4, 0.3}, {16, 32, 128, 1, 2, 0.2}};
// 16 pieces of a byte of each thread, where neither factor has larger ones.
constexpr Candidate byteGathers[] = {
    {128, 128, 32, 2, 4, 1.0}, {64, 128, 32, 2, 4, 0.8},
    {128, 64, 32, 4, 2, 0.8},  {64, 64, 32, 2, 4, 0.6},
    {32, 64, 32, 2, 4, 0.4},   {32, 32, 32, 2, 2, 0.3},
    {16, 128, 32, 1, 8, 0.3},  {16, 32, 32, 1, 2, 0.2}};
// wgmma: two warpgroups multiply 64 rows each. A multiprocessor gets about 30
// bytes of L2 in a nanosecond, and at the tensor cores' full rate a tile of 128
// x 256 wants 46 of them, one of 128 x 128 as many as 61.
constexpr Candidate wgmmaTiles[] = {{128, 256, 64, 8, 1, 1.0},
                                    {128, 128, 64, 8, 1, 0.75}};
constexpr Candidate tf32WgmmaTiles[] = {{128, 256, 32, 8, 1, 1.0},
                                        {128, 128, 32, 8, 1, 0.75}};
// Of 8 bits a tile of k has the same bytes, and takes as long.
constexpr Candidate integerWgmmaTiles[] = {{128, 256, 128, 8, 1, 1.0},
                                           {128, 128, 128, 8, 1, 0.75}};
// Of f8 values a thread has all sums twice: those of a tile of k, and all. For
// each 256 products of a tile of 128 x 128 a warp adds 64 times, while the
// other warpgroup multiplies; that these hide is assumed, but for a tenth.
constexpr Candidate floatWgmmaTiles[] = {{128, 192, 128, 8, 1, 0.8},
                                         {128, 128, 128, 8, 1, 0.68}};

/// Tiles of one kind, and products in a nanosecond of a multiprocessor.
struct Family {
  GemmSchedule::Kind kind;
  ArrayRef<Candidate> tiles;
  double products;
};
} // namespace

static int64_t multiprocessors(const CudaTarget &target) {
  return CudaModel::of(target.sm).multiprocessors;
}

/// Whether the factor comes in pieces of 16 bytes.
static bool isWhole(const GemmFactor &factor) {
  return factor.inMemory && factor.vector * elementBytes(factor.element) == 16;
}

/// An upper bound: the stages with their padding, or the tile of C.
static int64_t sharedBytes(const Gemm &gemm, const GemmSchedule &s) {
  int64_t size = gemm.isOfBytes                 ? 1
                 : s.kind == GemmSchedule::Simt ? elementBytes(gemm.type)
                                                : elementBytes(gemm.element);
  int64_t stages =
      s.kind == GemmSchedule::Wgmma
          ? WgmmaProduct::stageBytes(s)
          : (s.blockM + s.blockN + 16) * (s.blockK + 4) * size * s.stages;
  int64_t tile = s.blockM * (s.blockN + 8) * elementBytes(gemm.type);
  return std::max(stages, tile) + s.tableBytes(gemm) + 256;
}

/// Blocks that fit in a multiprocessor at a time.
static int64_t blocksTogether(const Gemm &gemm, const CudaTarget &target,
                              const GemmSchedule &s) {
  if (s.kind == GemmSchedule::Wgmma)
    return 1; // it takes all registers
  // Sums, and what addresses and fragments of factors take, in words.
  int64_t sums =
      s.blockM * s.blockN / s.threads() * (elementBytes(gemm.type) / 4);
  int64_t registers = std::min<int64_t>(sums + 80, 255);
  int64_t byRegisters = 65536 / (registers * s.threads());
  int64_t byMemory = target.sharedBytes() / sharedBytes(gemm, s);
  return std::clamp<int64_t>(std::min(byRegisters, byMemory), 1, 8);
}

/// Nanoseconds. `products` are those of a busy multiprocessor in one.
static double estimate(const Gemm &gemm, const CudaTarget &target,
                       const GemmSchedule &s, double products) {
  // What a multiprocessor gets from L2 in a nanosecond, and how long the first
  // tiles take to come.
  const double bytes = 30, start = 1000;
  double blocks = static_cast<double>(gemm.batches) * s.mTiles(gemm) *
                  s.nTiles(gemm) * s.splits;
  double tile = static_cast<double>(s.blockM) * s.blockN;
  // A multiprocessor's quarter with one warp issues most of the time.
  double filled = std::min(1.0, 0.35 + 0.65 * s.threads() / (8.0 * warpSize));
  double tiles = static_cast<double>(s.splitTiles) * s.blockK;
  double alone = tile * tiles / products; // if nothing is waited for
  double around = start + tile * elementBytes(gemm.element) / bytes;
  if (s.splits > 1) // the last block reads all parts, alone and behind fences
    around += start + (1 + 2.0 * static_cast<double>(s.splits)) * tile *
                          elementBytes(gemm.type) / bytes;
  // Blocks of a wave overlap what is around the products.
  double together =
      std::min<double>(blocksTogether(gemm, target, s),
                       std::ceil(blocks / multiprocessors(target)));
  double waves = std::ceil(blocks / (multiprocessors(target) * together));
  double busy = together > 1 ? 1.0 : filled;
  return waves * std::max(together * alone, alone / busy + around) + start;
}

/// Pieces that a thread holds in registers while they are on their way.
static int64_t piecesHeld(const Gemm &gemm, const GemmSchedule &s) {
  auto held = [&](const GemmFactor &factor, int64_t lines) -> int64_t {
    return isWhole(factor) ? 0 : lines * s.blockK / factor.vector / s.threads();
  };
  return held(*gemm.a, s.blockM) + held(*gemm.b, s.blockN);
}

/// Tiles of k on their way.
static int64_t stagesOf(const GemmSchedule &s, const CudaTarget &target) {
  if (s.kind != GemmSchedule::Wgmma)
    return s.kind == GemmSchedule::Mma ? 4 : 2;
  GemmSchedule one = s;
  one.stages = 1;
  constexpr int64_t enough = 6, besides = 1024;
  return std::min(
      (target.sharedBytes() - besides) / WgmmaProduct::stageBytes(one), enough);
}

/// The tiles of a kind.
static Family tilesOf(const Gemm &gemm, const CudaTarget &target,
                      GemmSchedule::Kind kind) {
  bool gathers = !isWhole(*gemm.a) || !isWhole(*gemm.b);
  auto either = [&](ArrayRef<Candidate> whole, ArrayRef<Candidate> pieces) {
    return gathers ? pieces : whole;
  };
  bool isHalf = gemm.element.isF16() || gemm.element.isBF16();
  switch (kind) {
  case GemmSchedule::Wgmma:
    if (gemm.isOfBytes)
      return {kind,
              isa<FloatType>(gemm.a->format)
                  ? ArrayRef<Candidate>(floatWgmmaTiles)
                  : integerWgmmaTiles,
              6800};
    if (isHalf)
      return {kind, wgmmaTiles, 3400};
    return {kind, tf32WgmmaTiles, 1700};
  case GemmSchedule::Mma:
    if (gemm.isOfBytes)
      return {kind,
              either(gemm.a->alongK && gemm.b->alongK
                         ? ArrayRef<Candidate>(byteTiles)
                         : byteTurns,
                     byteGathers),
              2000 *
                  byteRateByWarps(target.sm, isa<FloatType>(gemm.a->format))};
    if (isHalf)
      return {kind, either(halfTiles, halfGathers), 2000};
    return {kind, either(tf32Tiles, tf32Gathers), 1000};
  case GemmSchedule::Simt:
    break;
  }
  if (gemm.type.isF64())
    return {kind, f64Tiles, 100};
  return {kind, f32Tiles, 200};
}

ScheduleOverride GemmSchedule::numbers() const {
  using enum ScheduleKey;
  return ScheduleOverride({{BlockM, blockM},
                           {BlockN, blockN},
                           {BlockK, blockK},
                           {WarpsM, warpsM},
                           {WarpsN, warpsN},
                           {Stages, stages},
                           {Splits, splits}});
}

/// Whether it has all numbers that are asked for.
static bool hasNumbers(const GemmSchedule &s, const ScheduleOverride &asked) {
  ScheduleOverride own = s.numbers();
  return llvm::all_of(scheduleKeys(), [&](const ScheduleKeyRow &row) {
    return !asked.has(row.key) || !own.has(row.key) ||
           asked[row.key] == own[row.key];
  });
}

/// Whether tiles have whole parts for sums, and each thread columns of its own.
static bool fitsSums(const Gemm &gemm, const GemmSchedule &s) {
  int64_t piecesOfRow = s.blockN * elementBytes(gemm.element) / 16;
  return gemm.sums.empty() ||
         (s.blockM % kRowsOfTileSum == 0 && s.threads() % piecesOfRow == 0);
}

std::optional<TimedSchedule>
lower::cuda::scheduleGemm(const Gemm &gemm, const CudaTarget &target,
                          GemmSchedule::Kind kind,
                          const ScheduleOverride &asked) {
  std::optional<TimedSchedule> best;
  Family family = tilesOf(gemm, target, kind);
  for (const Candidate &c : family.tiles)
    for (int64_t splits = 1; splits <= 64; ++splits) {
      GemmSchedule s;
      s.kind = family.kind;
      s.blockM = c.blockM;
      s.blockN = c.blockN;
      s.blockK = c.blockK;
      s.warpsM = c.warpsM;
      s.warpsN = c.warpsN;
      s.stages = stagesOf(s, target);
      int64_t kTiles = std::max<int64_t>(s.kTiles(gemm), 1);
      s.splitTiles = (kTiles + splits - 1) / splits;
      s.splits = (kTiles + s.splitTiles - 1) / s.splitTiles;
      if (s.splits != splits)
        continue; // so many have no equal parts, and fewer have these
      int64_t tiles = gemm.batches * s.mTiles(gemm) * s.nTiles(gemm);
      if (splits > 1 && (s.depth() < 128 || tiles > mostCounters))
        break;
      if (sharedBytes(gemm, s) > target.sharedBytes() ||
          (s.kind != GemmSchedule::Wgmma && piecesHeld(gemm, s) > 24))
        continue;
      if (!hasNumbers(s, asked) || !fitsSums(gemm, s))
        continue;
      double seconds =
          1e-9 * estimate(gemm, target, s, family.products * c.rate);
      if (!best || seconds < best->seconds)
        best = {s, seconds};
    }
  return best;
}
