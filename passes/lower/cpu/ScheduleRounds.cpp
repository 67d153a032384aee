//===- ScheduleRounds.cpp - what tuning varies of a method's schedule -----===//
#include "passes/lower/cpu/ScheduleRounds.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::lower::cpu;

using Schedules = SmallVector<ScheduleOverride>;

/// Adds `best` with each of `values` for `key`.
static void vary(Schedules &list, const ScheduleOverride &best, ScheduleKey key,
                 std::initializer_list<int64_t> values) {
  for (int64_t value : values) {
    list.push_back(best);
    list.back().set(key, value);
  }
}

Schedules rounds::tiles(const ScheduleOverride &best, const CpuModel &target) {
  constexpr int64_t most = 14; // rows
  Schedules list;
  for (int64_t vectors = 1; vectors <= 6; ++vectors) {
    int64_t rows = std::min<int64_t>(target.tileRows(vectors), most);
    if (rows < 2)
      break;
    list.push_back(best);
    list.back().set(ScheduleKey::Rows, rows);
    list.back().set(ScheduleKey::Vectors, vectors);
  }
  return list;
}

Schedules rounds::rowsAndPacking(const ScheduleOverride &best,
                                 const CpuModel &) {
  Schedules list;
  vary(list, best, ScheduleKey::Block, {48, 96, 192, 384, 768});
  vary(list, best, ScheduleKey::Packs, {0, 1});
  return list;
}

Schedules rounds::blocksAndPlanes(const ScheduleOverride &best,
                                  const CpuModel &) {
  Schedules list;
  vary(list, best, ScheduleKey::Block, {16, 32, 64, 128, 256, 512, 1024, 2048});
  vary(list, best, ScheduleKey::Columns, {16, 32, 64, 128, 256, 512});
  return list;
}

Schedules rounds::matrixTiles(const ScheduleOverride &best, const CpuModel &) {
  Schedules list;
  vary(list, best, ScheduleKey::Block, {32, 64, 128, 256, 512, 1024});
  vary(list, best, ScheduleKey::Columns, {64, 128, 256, 512, 1024, 2048});
  return list;
}

Schedules rounds::ownRows(const ScheduleOverride &best, const CpuModel &) {
  Schedules list;
  vary(list, best, ScheduleKey::Vectors, {1, 2, 3, 4, 6, 8});
  return list;
}

Schedules rounds::ahead(const ScheduleOverride &best, const CpuModel &) {
  Schedules list;
  vary(list, best, ScheduleKey::Ahead, {0});
  return list;
}

Schedules rounds::elements(const ScheduleOverride &best,
                           const CpuModel &target) {
  Schedules list;
  vary(list, best, ScheduleKey::Block, {1024, 2048, 8192, 16384, 65536});
  list.append(ahead(best, target));
  return list;
}

Schedules rounds::columns(const ScheduleOverride &best,
                          const CpuModel &target) {
  Schedules list;
  vary(list, best, ScheduleKey::Columns, {32, 64, 128, 256, 512, 1024});
  list.append(ahead(best, target));
  return list;
}

Schedules rounds::vectors(const ScheduleOverride &best, const CpuModel &) {
  Schedules list;
  vary(list, best, ScheduleKey::Vectors, {1, 2, 4, 8});
  return list;
}
