//===- LoopsColumns.cpp - CUDA kernels that reduce outer indices ----------===//
#include "passes/lower/cuda/LoopEmitter.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

/// Neighbouring columns of a block, and the threads that share one.
static constexpr int64_t kColumns = 32, kSharers = 8;

LaunchShape LoopEmitter::emitColumns() {
  SmallVector<unsigned> outer = dims(/*reduced=*/false);
  unsigned last = outer.pop_back_val();
  SmallVector<unsigned> reduced = dims(/*reduced=*/true);
  int64_t columns = nest.sizes[last], length = nest.reducedSize();
  int64_t blocks = (columns + kColumns - 1) / kColumns;

  Value local = code.rem(code.thread(), kColumns);
  Value sharer = code.div(code.thread(), kColumns);
  Value column =
      code.add(code.mul(code.rem(code.block(), blocks), kColumns), local);
  Value outerAt = code.div(code.block(), blocks);
  Value isColumn;
  if (columns % kColumns != 0) {
    isColumn = code.less(column, code.index(columns));
    column = code.min(column, columns - 1);
  }
  auto enter = [&](Value reducedAt) -> Slot & {
    Slot &slot = addSlot();
    setIndices(slot, outer, outerAt);
    slot.index[last] = column;
    if (reducedAt)
      setIndices(slot, reduced, reducedAt);
    else
      for (unsigned d : reduced)
        slot.index[d] = code.index(0); // not used by elements of kept indices
    slot.elements.enter(slot.index, nest.sizes);
    return slot;
  };
  for (unsigned level = 0; level <= nest.levels; ++level) {
    auto reductions = reductionsAt(level);
    if (reductions.empty() && !hasFullRootAt(level))
      continue;
    Values sums;
    for (const LoopNest::Reduction *reduction : reductions)
      sums.push_back(neutral(*reduction));
    sums = code.loop(
        sharer, code.index(length), kSharers, sums,
        [&](Value at, ValueRange carried) {
          Slot &slot = enter(at);
          Values next(carried);
          for (auto [reduction, sum] : llvm::zip_equal(reductions, next)) {
            Value x = slot.elements.at(code.b, reduction->op->getOperand(0),
                                       reduction->index);
            sum = combine(*reduction, sum, x);
          }
          storeRoots(
              &slot,
              [&](const LoopNest::Root &root) {
                return root.isFull && root.level == level;
              },
              isColumn);
          slots.clear();
          return next;
        });
    // The sharers' sums meet in shared memory, and are added in their order.
    SmallVector<Value> parts;
    auto stored = [&](Type type) -> Type {
      return type.isInteger(1) ? code.b.getI8Type() : type;
    };
    for (Value sum : sums)
      parts.push_back(code.shared({kSharers, kColumns}, stored(sum.getType())));
    for (auto [sum, part] : llvm::zip_equal(sums, parts)) {
      Value x = sum;
      if (x.getType().isInteger(1))
        x = arith::ExtUIOp::create(code.b, code.loc, code.b.getI8Type(), x);
      memref::StoreOp::create(code.b, code.loc, x, part,
                              ValueRange{sharer, local});
    }
    if (!sums.empty())
      code.barrier();
    for (auto [i, reduction] : llvm::enumerate(reductions)) {
      Value total;
      for (int64_t s = 0; s < kSharers; ++s) {
        Value x = memref::LoadOp::create(code.b, code.loc, parts[i],
                                         ValueRange{code.index(s), local});
        if (sums[i].getType().isInteger(1))
          x = arith::TruncIOp::create(code.b, code.loc, code.b.getI1Type(), x);
        total = total ? combine(*reduction, total, x) : x;
      }
      bindTotal(*reduction, total);
    }
  }
  Slot &slot = enter(Value());
  Value first = code.equal(sharer, code.index(0));
  storeRoots(
      &slot, [](const LoopNest::Root &root) { return !root.isFull; },
      isColumn ? code.both(isColumn, first) : first);

  LaunchShape launch;
  launch.block[0] = kColumns * kSharers;
  launch.grid[0] = blocks * sizeOf(outer);
  return launch;
}
