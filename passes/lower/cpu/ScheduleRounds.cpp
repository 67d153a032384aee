//===- ScheduleRounds.cpp - what tuning varies of a method's schedule -----===//
#include "passes/lower/cpu/ScheduleRounds.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;

using Schedules = SmallVector<AskedSchedule>;

/// Adds `best` with each of `values` as its `part`.
template <typename Part, typename T>
static void vary(Schedules &list, const AskedSchedule &best, Part part,
                 std::initializer_list<T> values) {
  for (T value : values) {
    list.push_back(best);
    list.back().*part = value;
  }
}

Schedules rounds::tiles(const AskedSchedule &best, const CpuModel &target) {
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

Schedules rounds::rowsAndPacking(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block, {48, 96, 192, 384, 768});
  vary<>(list, best, &AskedSchedule::packs, {false, true});
  return list;
}

Schedules rounds::blocksAndPlanes(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block,
         {16, 32, 64, 128, 256, 512, 1024, 2048});
  vary<>(list, best, &AskedSchedule::columns, {16, 32, 64, 128, 256, 512});
  return list;
}

Schedules rounds::matrixTiles(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block, {32, 64, 128, 256, 512, 1024});
  vary<>(list, best, &AskedSchedule::columns, {64, 128, 256, 512, 1024, 2048});
  return list;
}

Schedules rounds::ownRows(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::vectors, {1, 2, 3, 4, 6, 8});
  return list;
}

Schedules rounds::ahead(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::ahead, {false});
  return list;
}

Schedules rounds::elements(const AskedSchedule &best, const CpuModel &target) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::block, {1024, 2048, 8192, 16384, 65536});
  list.append(ahead(best, target));
  return list;
}

Schedules rounds::columns(const AskedSchedule &best, const CpuModel &target) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::columns, {32, 64, 128, 256, 512, 1024});
  list.append(ahead(best, target));
  return list;
}

Schedules rounds::vectors(const AskedSchedule &best, const CpuModel &) {
  Schedules list;
  vary<>(list, best, &AskedSchedule::vectors, {1, 2, 4, 8});
  return list;
}
