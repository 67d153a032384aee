//===- ScheduleSearch.cpp - which schedules of a kernel are worth trying --===//
#include "passes/lower/cpu/ScheduleSearch.h"
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/lower/cpu/TileProduct.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

using Schedules = SmallVector<AskedSchedule>;

static Schedules methods(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  for (ScheduleMethod method : AskedSchedule::methods) {
    list.push_back(best);
    list.back().method = method;
  }
  return list;
}

/// Tiles whose sums, a row of the right factor and an element of the left one
/// fill the registers.
static Schedules tiles(const AskedSchedule &best, const CpuModel &target) {
  constexpr int64_t most = 14; // rows
  Schedules list;
  for (int64_t vectors = 1; vectors <= 6; ++vectors) {
    int64_t rows =
        std::min<int64_t>((target.registers - 2 - vectors) / vectors, most);
    if (rows < 2)
      break;
    list.push_back(best);
    list.back().rows = rows;
    list.back().vectors = vectors;
  }
  return list;
}

/// Adds `best` with each of `values` as its `part`.
template <typename Part, typename T>
static void vary(Schedules &list, const AskedSchedule &best, Part part,
                 std::initializer_list<T> values) {
  for (T value : values) {
    list.push_back(best);
    list.back().*part = value;
  }
}

static Schedules itemsOfProduct(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block, {48, 96, 192, 384, 768});
  vary<>(list, best, &AskedSchedule::packs, {false, true});
  return list;
}

/// What is a good number of tiles for one method is one of planes or pixels for
/// another.
static Schedules itemsOfConvolution(const AskedSchedule &best,
                                    const CpuModel &target) {
  if (best.method == ScheduleMethod::Windows)
    return itemsOfProduct(best, target);
  Schedules list;
  vary<>(list, best, &AskedSchedule::block,
         {16, 32, 64, 128, 256, 512, 1024, 2048});
  vary<>(list, best, &AskedSchedule::columns, {16, 32, 64, 128, 256, 512});
  return list;
}

static Schedules itemsOfTiles(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block, {32, 64, 128, 256, 512, 1024});
  vary<>(list, best, &AskedSchedule::columns, {64, 128, 256, 512, 1024, 2048});
  return list;
}

static Schedules tilesOfAttention(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::vectors, {1, 2, 3, 4, 6, 8});
  return list;
}

static Schedules itemsOfLoops(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block, {1024, 2048, 8192, 16384, 65536});
  vary<>(list, best, &AskedSchedule::columns, {32, 64, 128, 256, 512, 1024});
  vary<>(list, best, &AskedSchedule::ahead, {false});
  return list;
}

static Schedules vectorsOfLoops(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::vectors, {1, 2, 4, 8});
  return list;
}

SmallVector<ScheduleRound> cpu::scheduleRounds(KernelOp kernel) {
  if (flowOf(kernel))
    return {};
  if (isLoopKernel(kernel))
    return {itemsOfLoops, vectorsOfLoops};
  Operation *anchor = findAnchor(kernel);
  if (!anchor)
    return {};
  switch (lower::familyOf(anchor->getName())) {
  case AnchorFamily::Matmul:
    if (takesTiles(anchor))
      return {itemsOfTiles};
    return {tiles, itemsOfProduct};
  case AnchorFamily::Convolution:
    return {methods, tiles, itemsOfConvolution};
  case AnchorFamily::Attention:
    return {tilesOfAttention};
  default:
    return {};
  }
}
