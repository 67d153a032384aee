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
  // Short rows share a warp; long ones have a block of their own, but where
  // rows are added to each other: each thread has its elements of all of them.
  while (shape.threads > 1 && shape.threads / 2 >= pieces)
    shape.threads /= 2;
  while (nest.partials.empty() && shape.threads >= warpSize &&
         shape.threads < 1024 && pieces > shape.threads * 4)
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
  if (!nest.partials.empty())
    return emitRowParts(shape);
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
    emitKeptRow(shape, kept, row, isRow, {});
  else
    emitLongRow(shape, kept, row, isRow);
  storeOfRow(shape, kept, row, isRow);

  LaunchShape launch;
  launch.block[0] = shape.threads * shape.rows;
  launch.grid[0] = (rows + shape.rows - 1) / shape.rows;
  return launch;
}

void LoopEmitter::storeOfRow(const RowShape &shape, ArrayRef<unsigned> kept,
                             Value row, Value isRow) {
  finishReads();
  Slot &slot = addSlot();
  setIndices(slot, kept, row);
  for (unsigned d : nest.dims(/*reduced=*/true))
    slot.index[d] = code.index(0); // not used by elements of kept indices
  slot.elements.enter(slot.index, nest.sizes);
  Value first =
      code.equal(code.rem(code.thread(), shape.threads), code.index(0));
  storeRoots(
      &slot,
      [](const LoopNest::Root &root) {
        return !root.isFull && !root.isPartial;
      },
      isRow ? code.both(isRow, first) : first);
}

/// Rows of a block are those of a part; its threads take as many of them at a
/// time as a block has.
LaunchShape LoopEmitter::emitRowParts(const RowShape &shape) {
  SmallVector<unsigned> kept = nest.dims(/*reduced=*/false);
  int64_t rows = nest.sizeOf(kept) / nest.parts;
  int64_t rounds = (rows + shape.rows - 1) / shape.rows;
  Value sharer = code.div(code.thread(), shape.threads);
  Value firstRow = code.mul(code.block(), rows);
  Values sums;
  for (const LoopNest::Reduction &partial : nest.partials)
    sums.append(shape.chunks * shape.vector,
                lower::neutral(code.b, code.loc, partial));
  SharedNumbers ofAllRows = totals;
  sums = code.loop(code.index(0), code.index(rounds * shape.rows), shape.rows,
                   sums, [&](Value round, ValueRange carried) {
                     Value row = code.add(round, sharer), isRow;
                     if (rows % shape.rows != 0) {
                       isRow = code.less(row, code.index(rows));
                       row = code.min(row, rows - 1);
                     }
                     row = code.add(firstRow, row);
                     Values next(carried);
                     emitKeptRow(shape, kept, row, isRow, next);
                     storeOfRow(shape, kept, row, isRow);
                     slots.clear();
                     totals = ofAllRows;
                     return next;
                   });
  storePartials(shape, sums);

  LaunchShape launch;
  launch.block[0] = shape.threads * shape.rows;
  launch.grid[0] = nest.parts;
  return launch;
}

/// Adds what the threads with the same columns have, in their order, through
/// shared memory.
void LoopEmitter::storePartials(const RowShape &shape, ArrayRef<Value> sums) {
  OpBuilder &b = code.b;
  int64_t length = nest.reducedSize(), ofThread = shape.chunks * shape.vector;
  Value sharer = code.div(code.thread(), shape.threads);
  Value lane = code.mul(code.rem(code.thread(), shape.threads), shape.vector);
  SmallVector<size_t> roots;
  for (auto [i, root] : llvm::enumerate(nest.roots))
    if (root.isPartial)
      roots.push_back(i);
  llvm::DenseMap<Type, Value> memories;
  for (auto [p, partial] : llvm::enumerate(nest.partials)) {
    ArrayRef<Value> own = sums.slice(p * ofThread, ofThread);
    Value &memory = memories[own[0].getType()];
    if (memory)
      code.barrier(); // what the result before needed has been read
    else
      memory = code.shared({shape.rows, length}, own[0].getType());
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      Value first = code.add(lane, chunk * shape.threads * shape.vector);
      auto keep = [&, chunk = chunk] {
        for (int64_t v = 0; v < shape.vector; ++v)
          memref::StoreOp::create(b, code.loc, own[chunk * shape.vector + v],
                                  memory,
                                  ValueRange{sharer, code.add(first, v)});
      };
      if ((chunk + 1) * shape.threads * shape.vector > length)
        code.when(code.less(first, code.index(length)), keep);
      else
        keep();
    }
    code.barrier();
    const LoopNest::Root &root = nest.roots[roots[p]];
    Value output = body.outputs[firstResult + roots[p]];
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfterValue(output);
      output = lower::flatten(b, code.loc, output);
    }
    code.loop(
        code.thread(), code.index(length), shape.threads * shape.rows,
        [&, &reduction = partial](Value column) {
          Value total;
          for (int64_t s = 0; s < shape.rows; ++s) {
            Value x = memref::LoadOp::create(b, code.loc, memory,
                                             ValueRange{code.index(s), column});
            total = total ? combine(reduction, total, x) : x;
          }
          lower::storeElement(
              b, code.loc,
              cast<RankedTensorType>(root.value.getType()).getElementType(),
              total, output, code.add(code.mul(code.block(), length), column));
        });
  }
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
                              Value row, Value isRow,
                              MutableArrayRef<Value> partials) {
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
    // Before a result is stored where an operand lies.
    for (auto [p, partial] : llvm::enumerate(nest.partials)) {
      if (partial.level != level)
        continue;
      Value *sum = &partials[p * shape.chunks * shape.vector];
      for (Piece &piece : pieces)
        for (Slot *slot : piece.slots) {
          Value x = slot->elements.at(code.b, partial.op->getOperand(0),
                                      partial.index);
          if (isRow)
            x = code.select(isRow, x,
                            lower::neutral(code.b, code.loc, partial));
          *sum = combine(partial, *sum, x);
          ++sum;
        }
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
