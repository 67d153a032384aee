//===- Matrices.cpp - ldmatrix and stmatrix -------------------------------===//
//
// Matrices of 8 x 8 elements of 16 bits; lanes 8 i to 8 i + 7 give the
// addresses of the rows of matrix i. Lane l holds elements 2 (l % 4) and the
// next one of row l / 4, or of column l / 4 where it is transposed (PTX ISA,
// "ldmatrix").
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/kernel/Functions.h"

#include <cstring>

namespace tandem::emulator::kernel::functions {

namespace {

struct LoadIn {
  const MatrixLoad *loads;
  u32 count;
};
struct StoreIn {
  void *row;
  const u32 *values;
  u32 number, transposed;
};

void checkRow(Lanes &lanes, u32 lane, const void *row, u32 flags) {
  const Thread &thread = lanes.first[lane];
  if (reinterpret_cast<uintptr_t>(row) & 15)
    lanes.block.fail(thread, "misaligned access",
                     "a row of ldmatrix or stmatrix is not at a multiple of "
                     "16");
  lanes.block.checkShared(thread, row, 16, flags);
}

/// The element of a matrix that half `h` of lane `l`'s register is.
struct Position {
  u32 row, column;
};
Position positionOf(u32 l, u32 h, bool transposed) {
  u32 major = l >> 2, minor = (l & 3) * 2 + h;
  return transposed ? Position{minor, major} : Position{major, minor};
}

void loadLanes(Lanes &lanes) {
  const u32 count = lanes.in<LoadIn>(0).count;
  u32 done = 0; // registers
  for (u32 c = 0; c < count; ++c) {
    const u32 number = lanes.in<LoadIn>(0).loads[c].number;
    const bool transposed = lanes.in<LoadIn>(0).loads[c].transposed;
    u32 result[32][4];
    for (u32 m = 0; m < number; ++m) {
      uint16_t matrix[8][8];
      for (u32 r = 0; r < 8; ++r) {
        const void *row = lanes.in<LoadIn>(m * 8 + r).loads[c].row;
        checkRow(lanes, m * 8 + r, row, 0);
        std::memcpy(matrix[r], row, 16);
      }
      for (u32 l = 0; l < 32; ++l) {
        Position low = positionOf(l, 0, transposed);
        Position high = positionOf(l, 1, transposed);
        result[l][m] = matrix[low.row][low.column] |
                       static_cast<u32>(matrix[high.row][high.column]) << 16;
      }
    }
    for (u32 l = 0; l < 32; ++l)
      std::memcpy(&lanes.out<u32>(l) + done, result[l], number * 4);
    done += number;
  }
}

void storeLanes(Lanes &lanes) {
  const u32 number = lanes.in<StoreIn>(0).number;
  const bool transposed = lanes.in<StoreIn>(0).transposed;
  for (u32 m = 0; m < number; ++m) {
    uint16_t matrix[8][8];
    for (u32 l = 0; l < 32; ++l)
      for (u32 h = 0; h < 2; ++h) {
        Position at = positionOf(l, h, transposed);
        matrix[at.row][at.column] =
            static_cast<uint16_t>(lanes.in<StoreIn>(l).values[m] >> (16 * h));
      }
    for (u32 r = 0; r < 8; ++r) {
      void *row = lanes.in<StoreIn>(m * 8 + r).row;
      checkRow(lanes, m * 8 + r, row, artifact::kAccessWrite);
      std::memcpy(row, matrix[r], 16);
    }
  }
}

} // namespace

void requireWholeWarp(Thread &thread, const char *name) {
  if (thread.block->existing(thread, ~0u) != ~0u)
    thread.block->fail(thread, "an incomplete warp",
                       std::string(name) + " needs 32 threads");
}

void ldmatrix(T base, u32 *out, const MatrixLoad *loads, u32 count) {
  Thread &thread = threadOf(base);
  requireWholeWarp(thread, "ldmatrix");
  LoadIn in{loads, count};
  thread.block->collective(thread, ~0u, "ldmatrix", loadLanes, &in, out, true);
}

void stmatrix(T base, void *row, const u32 *values, u32 number,
              u32 transposed) {
  Thread &thread = threadOf(base);
  requireWholeWarp(thread, "stmatrix");
  StoreIn in{row, values, number, transposed};
  thread.block->collective(thread, ~0u, "stmatrix", storeLanes, &in, nullptr,
                           true);
}

} // namespace tandem::emulator::kernel::functions
