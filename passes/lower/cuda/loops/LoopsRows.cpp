//===- LoopsRows.cpp - CUDA kernels whose innermost index is reduced ------===//
#include "passes/lower/cuda/loops/LoopEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

/// A thread's elements of a row that stay in registers, at most.
static constexpr int64_t kKept = 32;
/// A thread's elements of a long row whose reads are under way at once, in
/// several pieces; a block of 1024 threads has 64 registers for each.
static constexpr int64_t kAtOnce = 8;
/// Threads of a block that has several rows.
static constexpr int64_t kThreads = 256;

LoopEmitter::RowShape LoopEmitter::rowShape() {
  SmallVector<unsigned> reduced = nest.dims(/*reduced=*/true);
  int64_t length = nest.reducedSize();
  RowShape shape{warpSize, 1, vectorLength(), 1, false};
  while (shape.vector > 1 &&
         (reduced.empty() || nest.sizes[reduced.back()] % shape.vector != 0 ||
          length < shape.vector * 8))
    shape.vector /= 2;
  int64_t pieces = (length + shape.vector - 1) / shape.vector;
  // Short rows share a warp; long ones have a block of their own.
  while (shape.threads > 1 && shape.threads / 2 >= pieces)
    shape.threads /= 2;
  while (shape.threads >= warpSize && shape.threads < 1024 &&
         pieces > shape.threads * 4)
    shape.threads *= 2;
  // The threads of a row that has more than a warp meet at the block's
  // barriers.
  shape.rows = shape.threads > warpSize ? 1 : kThreads / shape.threads;
  shape.chunks = (pieces + shape.threads - 1) / shape.threads;
  int64_t most = shape.threads > 512 ? kKept / 2 : kKept;
  shape.keeps = shape.chunks * shape.vector <= most;
  return shape;
}

LaunchShape LoopEmitter::emitRows() {
  SmallVector<unsigned> kept = nest.dims(/*reduced=*/false);
  RowShape shape = rowShape();
  int64_t rows = nest.sizeOf(kept);
  Value row = code.add(code.mul(code.block(), shape.rows),
                       code.div(code.thread(), shape.threads));
  Value isRow;
  if (rows % shape.rows != 0) {
    // Threads without a row work on the last one, and store nothing.
    isRow = code.less(row, code.index(rows));
    row = code.min(row, rows - 1);
  }
  if (shape.keeps)
    emitKeptRow(shape, kept, row, isRow);
  else
    emitLongRow(shape, kept, row, isRow);

  finishReads();
  Slot &slot = addSlot();
  setIndices(slot, kept, row);
  for (unsigned d : nest.dims(/*reduced=*/true))
    slot.index[d] = code.index(0); // not used by elements of kept indices
  slot.elements.enter(slot.index, nest.sizes);
  Value first =
      code.equal(code.rem(code.thread(), shape.threads), code.index(0));
  storeRoots(
      &slot, [](const LoopNest::Root &root) { return !root.isFull; },
      isRow ? code.both(isRow, first) : first);

  LaunchShape launch;
  launch.block[0] = shape.threads * shape.rows;
  launch.grid[0] = (rows + shape.rows - 1) / shape.rows;
  return launch;
}

LoopEmitter::Values
LoopEmitter::reduceRow(const RowShape &shape,
                       ArrayRef<const LoopNest::Reduction *> reductions,
                       Values sums) {
  auto combineOf = [&](size_t i, Value x, Value y) {
    return combine(*reductions[i], x, y);
  };
  if (shape.threads > warpSize)
    return code.reduceBlock(sums, shape.threads, combineOf);
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = code.reduceLanes(sum, shape.threads, [&, i = i](Value x, Value y) {
      return combineOf(i, x, y);
    });
  return sums;
}

/// Each thread's elements are computed beside each other, once.
void LoopEmitter::emitKeptRow(const RowShape &shape, ArrayRef<unsigned> kept,
                              Value row, Value isRow) {
  SmallVector<unsigned> reduced = nest.dims(/*reduced=*/true);
  int64_t length = nest.reducedSize();
  struct Piece {
    SmallVector<Slot *> slots;
    Value isInside; ///< null: always
  };
  SmallVector<Piece> pieces;
  Value lane = code.rem(code.thread(), shape.threads);
  for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    Piece &piece = pieces.emplace_back();
    Value at = code.add(code.mul(lane, shape.vector),
                        chunk * shape.threads * shape.vector);
    if ((chunk + 1) * shape.threads * shape.vector > length) {
      piece.isInside = code.less(at, code.index(length));
      at = code.min(at, length - shape.vector);
    }
    for (int64_t v = 0; v < shape.vector; ++v) {
      Slot &slot = addSlot();
      if (v == 0) {
        setIndices(slot, kept, row);
        setIndices(slot, reduced, at);
      } else {
        slot.index = piece.slots[0]->index;
        slot.index[reduced.back()] = code.add(slot.index[reduced.back()], v);
      }
      slot.elements.enter(slot.index, nest.sizes);
      piece.slots.push_back(&slot);
    }
  }
  for (unsigned level = 0; level <= nest.levels; ++level) {
    auto reductions = nest.reductionsAt(level);
    Values sums;
    for (const LoopNest::Reduction *reduction : reductions) {
      Value sum;
      for (Piece &piece : pieces)
        for (Slot *slot : piece.slots) {
          Value x = slot->elements.at(code.b, reduction->op->getOperand(0),
                                      reduction->index);
          if (piece.isInside)
            x = code.select(piece.isInside, x,
                            lower::neutral(code.b, code.loc, *reduction));
          sum = sum ? combine(*reduction, sum, x) : x;
        }
      sums.push_back(sum);
    }
    for (Piece &piece : pieces) {
      Value guard = piece.isInside;
      if (isRow)
        guard = guard ? code.both(guard, isRow) : isRow;
      storeRoots(
          piece.slots,
          [&](const LoopNest::Root &root) {
            return root.isFull && root.level == level;
          },
          guard);
    }
    sums = reduceRow(shape, reductions, std::move(sums));
    for (auto [reduction, sum] : llvm::zip_equal(reductions, sums))
      bindTotal(*reduction, sum);
  }
}

/// Elements are read again at each level, several of them at once.
void LoopEmitter::emitLongRow(const RowShape &shape, ArrayRef<unsigned> kept,
                              Value row, Value isRow) {
  SmallVector<unsigned> reduced = nest.dims(/*reduced=*/true);
  int64_t length = nest.reducedSize();
  Value lane = code.mul(code.rem(code.thread(), shape.threads), shape.vector);
  auto reductions = nest.reductionsAt(0);
  unsigned level = 0;
  // The thread's neighbours from `at` on.
  auto piece = [&](Value at, Value isInside, Values sums) {
    SmallVector<Slot *> elements;
    for (int64_t v = 0; v < shape.vector; ++v) {
      Slot &slot = addSlot();
      if (v == 0) {
        setIndices(slot, kept, row);
        setIndices(slot, reduced, at);
      } else {
        slot.index = elements[0]->index;
        slot.index[reduced.back()] = code.add(slot.index[reduced.back()], v);
      }
      slot.elements.enter(slot.index, nest.sizes);
      elements.push_back(&slot);
      for (auto [reduction, sum] : llvm::zip_equal(reductions, sums)) {
        Value x = slot.elements.at(code.b, reduction->op->getOperand(0),
                                   reduction->index);
        if (isInside)
          x = code.select(isInside, x,
                          lower::neutral(code.b, code.loc, *reduction));
        sum = combine(*reduction, sum, x);
      }
    }
    Value guard = isInside;
    if (isRow)
      guard = guard ? code.both(guard, isRow) : isRow;
    storeRoots(
        elements,
        [&](const LoopNest::Root &root) {
          return root.isFull && root.level == level;
        },
        guard);
    return sums;
  };
  for (; level <= nest.levels; ++level) {
    reductions = nest.reductionsAt(level);
    if (reductions.empty() && !nest.hasFullRootAt(level))
      continue;
    Values sums;
    for (const LoopNest::Reduction *reduction : reductions)
      sums.push_back(lower::neutral(code.b, code.loc, *reduction));
    int64_t step = shape.threads * shape.vector;
    int64_t pieces = std::clamp<int64_t>(
        length / step, 1, std::max<int64_t>(kAtOnce / shape.vector, 1));
    int64_t whole = length / (step * pieces) * step * pieces;
    sums = code.loop(lane, code.index(whole), step * pieces, sums,
                     [&](Value at, ValueRange carried) {
                       Values next(carried);
                       for (int64_t p = 0; p < pieces; ++p)
                         next = piece(code.add(at, p * step), Value(), next);
                       slots.clear();
                       return next;
                     });
    for (int64_t first = whole; first < length; first += step) {
      Value at = code.add(lane, first), isInside;
      if (first + step > length) {
        isInside = code.less(at, code.index(length));
        at = code.min(at, length - shape.vector);
      }
      sums = piece(at, isInside, sums);
    }
    slots.clear();
    sums = reduceRow(shape, reductions, std::move(sums));
    for (auto [reduction, sum] : llvm::zip_equal(reductions, sums))
      bindTotal(*reduction, sum);
  }
}
