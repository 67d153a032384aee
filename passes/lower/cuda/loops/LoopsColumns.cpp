//===- LoopsColumns.cpp - CUDA kernels that reduce outer indices ----------===//
#include "passes/lower/cuda/loops/LoopEmitter.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

/// Reduced indices of a thread whose reads are under way at once.
static constexpr int64_t kRowsAtOnce = 4;

LoopEmitter::ColumnShape LoopEmitter::columnShape() {
  int64_t columns = nest.sizes[nest.dims(/*reduced=*/false).back()];
  ColumnShape shape{vectorLength(), warpSize};
  while (shape.vector > 1 && columns % shape.vector != 0)
    shape.vector /= 2;
  // Few columns leave more threads for the reduced indices.
  while (shape.lanes > 1 && shape.lanes / 2 * shape.vector >= columns)
    shape.lanes /= 2;
  return shape;
}

int64_t LoopEmitter::columnBlocks() {
  SmallVector<unsigned> outer = nest.dims(/*reduced=*/false);
  int64_t columns = nest.sizes[outer.pop_back_val()];
  ColumnShape shape = columnShape();
  int64_t width = shape.lanes * shape.vector;
  return (columns + width - 1) / width * nest.sizeOf(outer);
}

void LoopEmitter::emitColumns(Value block) {
  SmallVector<unsigned> outer = nest.dims(/*reduced=*/false);
  unsigned last = outer.pop_back_val();
  SmallVector<unsigned> reduced = nest.dims(/*reduced=*/true);
  ColumnShape shape = columnShape();
  int64_t columns = nest.sizes[last], length = nest.reducedSize();
  int64_t width = shape.lanes * shape.vector,
          sharers = kPartThreads / shape.lanes;
  int64_t blocks = (columns + width - 1) / width;

  Value local = code.mul(code.rem(code.thread(), shape.lanes), shape.vector);
  Value sharer = code.div(code.thread(), shape.lanes);
  Value column = code.add(code.mul(code.rem(block, blocks), width), local);
  Value outerAt = code.div(block, blocks);
  Value isColumn;
  if (columns % width != 0) {
    isColumn = code.less(column, code.index(columns));
    column = code.min(column, columns - shape.vector);
  }
  // The thread's columns at one reduced index; null where that does not matter.
  auto enter = [&](Value reducedAt) {
    SmallVector<Slot *> elements;
    for (int64_t v = 0; v < shape.vector; ++v) {
      Slot &slot = addSlot();
      bindColumn(slot, v);
      if (v == 0) {
        setIndices(slot, outer, outerAt);
        slot.index[last] = column;
        if (reducedAt)
          setIndices(slot, reduced, reducedAt);
        else
          for (unsigned d : reduced)
            slot.index[d] = code.index(0);
      } else {
        slot.index = elements[0]->index;
        slot.index[last] = code.add(column, v);
      }
      slot.elements.enter(slot.index, nest.sizes);
      elements.push_back(&slot);
    }
    return elements;
  };
  for (unsigned level = 0; level <= nest.levels; ++level) {
    auto reductions = nest.reductionsAt(level);
    if (reductions.empty() && !nest.hasFullRootAt(level))
      continue;
    // Of each reduction the sums of all columns.
    Values sums;
    for (const LoopNest::Reduction *reduction : reductions)
      sums.append(shape.vector, lower::neutral(code.b, code.loc, *reduction));
    auto row = [&](Value at, Value isInside, Values next) {
      SmallVector<Slot *> elements = enter(at);
      for (auto [r, reduction] : llvm::enumerate(reductions))
        for (int64_t v = 0; v < shape.vector; ++v) {
          Value x = elements[v]->elements.at(
              code.b, reduction->op->getOperand(0), reduction->index);
          if (isInside)
            x = code.select(isInside, x,
                            lower::neutral(code.b, code.loc, *reduction));
          Value &sum = next[r * shape.vector + v];
          sum = combine(*reduction, sum, x);
        }
      Value guard = isInside;
      if (isColumn)
        guard = guard ? code.both(guard, isColumn) : isColumn;
      storeRoots(
          elements,
          [&](const LoopNest::Root &root) {
            return root.isFull && root.level == level;
          },
          guard);
      return next;
    };
    int64_t rows = std::clamp<int64_t>(length / sharers, 1, kRowsAtOnce);
    int64_t whole = length / (sharers * rows) * sharers * rows;
    sums = code.loop(sharer, code.index(whole), sharers * rows, sums,
                     [&](Value at, ValueRange carried) {
                       Values next(carried);
                       for (int64_t r = 0; r < rows; ++r)
                         next = row(code.add(at, r * sharers), Value(), next);
                       slots.clear();
                       return next;
                     });
    for (int64_t first = whole; first < length; first += sharers) {
      Value at = code.add(sharer, first), isInside;
      if (first + sharers > length) {
        isInside = code.less(at, code.index(length));
        at = code.min(at, length - 1);
      }
      sums = row(at, isInside, sums);
    }
    slots.clear();
    combineSharers(shape, reductions, sums, local);
  }
  finishReads();
  SmallVector<Slot *> elements = enter(Value());
  Value first = code.equal(sharer, code.index(0));
  storeRoots(
      elements, [](const LoopNest::Root &root) { return !root.isFull; },
      isColumn ? code.both(isColumn, first) : first);
}

/// First in each warp, then, in the order of warps, through shared memory.
void LoopEmitter::combineSharers(
    const ColumnShape &shape, ArrayRef<const LoopNest::Reduction *> reductions,
    Values sums, Value local) {
  if (sums.empty())
    return;
  constexpr int64_t warps = kPartThreads / warpSize;
  OpBuilder &b = code.b;
  SmallVector<Value> parts;
  for (auto [r, reduction] : llvm::enumerate(reductions)) {
    for (int64_t v = 0; v < shape.vector; ++v) {
      Value &sum = sums[r * shape.vector + v];
      for (int64_t mask = warpSize / 2; mask >= shape.lanes; mask /= 2)
        sum = combine(*reduction, sum, code.shuffleXor(sum, mask));
    }
    Type type = sums[r * shape.vector].getType();
    parts.push_back(code.shared({warps, shape.lanes * shape.vector}, type));
  }
  code.when(code.less(code.lane(), code.index(shape.lanes)), [&] {
    for (size_t i = 0; i < sums.size(); ++i) {
      Value x = sums[i];
      if (x.getType().isInteger(1))
        x = arith::ExtUIOp::create(b, code.loc, b.getI8Type(), x);
      Value at = code.add(local, static_cast<int64_t>(i) % shape.vector);
      memref::StoreOp::create(b, code.loc, x, parts[i / shape.vector],
                              ValueRange{code.warp(), at});
    }
  });
  code.barrier();
  for (auto [r, reduction] : llvm::enumerate(reductions)) {
    SmallVector<Value> columnTotals;
    for (int64_t v = 0; v < shape.vector; ++v) {
      Value total, at = code.add(local, v);
      for (int64_t w = 0; w < warps; ++w) {
        Value x = memref::LoadOp::create(b, code.loc, parts[r],
                                         ValueRange{code.index(w), at});
        if (sums[r * shape.vector].getType().isInteger(1))
          x = arith::TruncIOp::create(b, code.loc, b.getI1Type(), x);
        total = total ? combine(*reduction, total, x) : x;
      }
      columnTotals.push_back(total);
    }
    ofColumns.push_back({reduction->op->getResult(0), columnTotals});
  }
}

void LoopEmitter::bindColumn(Slot &slot, int64_t column) {
  for (auto &[result, columnTotals] : ofColumns)
    slot.elements.bind(
        result, [total = columnTotals[column]](
                    OpBuilder &, Location, const Place &) { return total; });
}
