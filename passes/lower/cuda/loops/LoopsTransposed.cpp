//===- LoopsTransposed.cpp - CUDA kernels that turn their operands --------===//
#include "passes/lower/cuda/loops/LoopEmitter.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

/// A tile has as many rows and columns as a warp has threads.
static constexpr int64_t kTile = warpSize;
static constexpr int64_t kThreads = 256;
/// A thread's elements of a tile.
static constexpr int64_t kSteps = kTile * kTile / kThreads;
/// Threads that read down a column of the tile find it in different banks.
static constexpr int64_t kStride = kTile + 1;
/// Narrower than this a tile wastes more than it saves.
static constexpr int64_t kLeast = kTile / 2;
static constexpr size_t kMostReads = 8;

/// Operands in which neighbours of the result's last dimension are apart and
/// those of another one are neighbours. One such dimension is chosen: that of
/// the most bytes.
LoopEmitter::Turned LoopEmitter::turnedReads() {
  unsigned last = nest.sizes.size() - 1;
  llvm::MapVector<unsigned, Turned> found;
  llvm::DenseMap<unsigned, int64_t> bytes;
  for (const LoopNest::Access &read : nest.reads) {
    auto type = cast<RankedTensorType>(read.value.getType());
    AffineExpr position = simplifyIndex(
        linearize(read.place.index, type.getShape(), code.b.getContext()),
        nest.sizes);
    std::optional<int64_t> stride = coefficientOf(position, last);
    if (!read.place.guards.empty() || !stride || std::abs(*stride) < 2)
      continue;
    for (unsigned d = 0; d < last; ++d)
      if (coefficientOf(position, d) == 1 && nest.sizes[d] >= kLeast) {
        Turned &turned = found.insert({d, Turned{d, {}}}).first->second;
        if (turned.reads.size() == kMostReads)
          break;
        turned.reads.push_back(&read);
        bytes[d] += elementBytes(type.getElementType());
        break;
      }
  }
  Turned best{last, {}};
  for (auto &[d, turned] : found)
    if (best.reads.empty() || bytes[d] > bytes[best.dim])
      best = turned;
  return best;
}

Fit LoopEmitter::fitTransposed() {
  if (nest.sizes.size() < 2)
    return Fit::impossible("expected at least 2 indices but got " +
                           Twine(nest.sizes.size()));
  if (nest.keptSize() == 0)
    return Fit::impossible("expected elements but got none");
  if (nest.sizes.back() < kLeast)
    return Fit::impossible("expected at least " + Twine(kLeast) +
                           " neighbours but got " + Twine(nest.sizes.back()));
  if (turnedReads().reads.empty())
    return Fit::impossible("expected an operand in which neighbours of the "
                           "result are apart but got none");
  return Fit::good();
}

LaunchShape LoopEmitter::emitTransposed() {
  if (turnsBytes())
    return emitBytes();
  Turned turned = turnedReads();
  unsigned last = nest.sizes.size() - 1;
  SmallVector<unsigned> outer;
  for (unsigned d = 0; d < last; ++d)
    if (d != turned.dim)
      outer.push_back(d);
  auto tilesOf = [&](unsigned d) {
    return (nest.sizes[d] + kTile - 1) / kTile;
  };
  Value lane = code.lane(), warp = code.warp();
  auto [rest, column] = code.split(code.block(), tilesOf(last));
  auto [outerAt, row] = code.split(rest, tilesOf(turned.dim));
  column = code.mul(column, kTile);
  row = code.mul(row, kTile);

  // The element of the tile in this row and column, the nearest one where there
  // is none; null: there is always one.
  auto enter = [&](Value inRow, Value inColumn, Value &isInside) -> Slot & {
    Slot &slot = addSlot();
    setIndices(slot, outer, outerAt);
    for (auto [d, at] : {std::pair{turned.dim, code.add(row, inRow)},
                         std::pair{last, code.add(column, inColumn)}}) {
      slot.index[d] = at;
      if (nest.sizes[d] % kTile == 0)
        continue;
      Value holds = code.less(at, code.index(nest.sizes[d]));
      isInside = isInside ? code.both(isInside, holds) : holds;
      slot.index[d] = code.min(at, nest.sizes[d] - 1);
    }
    slot.elements.enter(slot.index, nest.sizes);
    return slot;
  };
  auto stepOf = [&](int64_t step) {
    return code.add(warp, step * (kThreads / warpSize));
  };

  SmallVector<Value> tiles;
  SmallVector<Type> types;
  for (const LoopNest::Access *read : turned.reads) {
    types.push_back(scalar::computeType(
        cast<RankedTensorType>(read->value.getType()).getElementType()));
    tiles.push_back(code.shared({kTile * kStride}, types.back()));
  }
  // As the operands have them: neighbouring threads read neighbours. All reads
  // are under way before the first is waited for.
  SmallVector<SmallVector<Value>> elements(kSteps);
  for (int64_t step = 0; step < kSteps; ++step) {
    Value isInside;
    Slot &slot = enter(lane, stepOf(step), isInside);
    for (const LoopNest::Access *read : turned.reads)
      elements[step].push_back(
          slot.elements.at(code.b, read->value, read->place.index));
  }
  for (int64_t step = 0; step < kSteps; ++step)
    for (auto [x, type, tile] : llvm::zip_equal(elements[step], types, tiles))
      lower::storeElement(code.b, code.loc, type, x, tile,
                          code.add(code.mul(stepOf(step), kStride), lane));
  code.barrier();
  slots.clear();
  for (int64_t step = 0; step < kSteps; ++step) {
    Value isInside, inRow = stepOf(step);
    Slot *slot = &enter(inRow, lane, isInside);
    for (auto [read, type, tile] : llvm::zip_equal(turned.reads, types, tiles))
      slot->elements.know(
          read->value, read->place,
          lower::loadElement(code.b, code.loc, type, tile,
                             code.add(code.mul(lane, kStride), inRow)));
    storeRoots(
        slot, [](const LoopNest::Root &) { return true; }, isInside);
  }

  LaunchShape shape;
  shape.block[0] = kThreads;
  shape.grid[0] = tilesOf(last) * tilesOf(turned.dim) * nest.sizeOf(outer);
  return shape;
}
