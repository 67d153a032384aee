//===- LoopsColumns.cpp - loop kernels that reduce outer indices ----------===//
#include "passes/lower/cpu/loops/LoopEmitter.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

/// The longest sum of a column that is not made of partial sums.
static constexpr int64_t kPartialLength = 256;

/// Columns of an item: whole cache lines, and as many as the first-level cache
/// has room for accumulators of, since wide rows are read faster; but enough
/// items for many threads.
static int64_t columnBlock(int64_t columns, int64_t outer) {
  for (int64_t block : {1024, 512, 256, 128, 64, 32})
    if (outer * ((columns + block - 1) / block) >= 16)
      return block;
  return 16;
}

/// The accumulators of what is asked for are on the stack.
static int64_t askedBlock(int64_t asked) {
  constexpr int64_t least = 16, most = 2048;
  return llvm::alignTo(std::clamp(asked, least, most), least);
}

static Value allocate(OpBuilder &b, Location loc, Type element, int64_t size) {
  return memref::AllocaOp::create(b, loc, MemRefType::get({size}, element),
                                  b.getI64IntegerAttr(64));
}

int64_t LoopEmitter::columnsOfItem() const {
  if (int64_t asked = said()[ScheduleKey::Columns])
    return askedBlock(asked);
  SmallVector<unsigned> outer = nest.dims(/*reduced=*/false);
  unsigned last = outer.pop_back_val();
  return columnBlock(nest.sizes[last], nest.sizeOf(outer));
}

ScheduleOverride LoopEmitter::cutColumns() {
  ScheduleOverride numbers = cutAhead();
  numbers.set(ScheduleKey::Columns, columnsOfItem());
  return numbers;
}

Work LoopEmitter::emitColumns() {
  SmallVector<unsigned> outer = nest.dims(/*reduced=*/false);
  unsigned last = outer.pop_back_val();
  int64_t columns = nest.sizes[last];
  int64_t block = columnsOfItem();
  int64_t blocks = (columns + block - 1) / block;
  int64_t reducedSize = nest.reducedSize();
  SmallVector<unsigned> reduced = nest.dims(/*reduced=*/true);
  // Sums are cut along the innermost reduced dimension.
  bool partial = reducedSize > 2 * kPartialLength;

  askAhead(reduced.back(), std::min(block, columns));
  SmallVector<Value> totals, parts;
  for (const LoopNest::Reduction &reduction : nest.reductions) {
    Type type = lower::neutral(b, loc, reduction).getType();
    totals.push_back(allocate(b, loc, type, block));
    parts.push_back(partial ? allocate(b, loc, type, block) : Value());
  }
  Value low, high;
  auto overColumns = [&](llvm::function_ref<void(Value local)> code) {
    loop(low, high, [&](Value column) {
      ivs[last] = column;
      elements.enter(ivs, nest.sizes);
      code(arith::SubIOp::create(b, loc, column, low));
    });
  };
  // Where the code stands, relative to the block.
  auto here = [&](OpBuilder &b, Location loc) -> Value {
    return arith::SubIOp::create(b, loc, ivs[last], low);
  };
  for (auto [reduction, total] : llvm::zip_equal(nest.reductions, totals))
    elements.bind(reduction.op->getResult(0), [&here, total](OpBuilder &b,
                                                             Location loc,
                                                             const Place &) {
      return memref::LoadOp::create(b, loc, total, here(b, loc)).getResult();
    });

  auto emitLevel = [&](unsigned level) {
    SmallVector<size_t> own;
    for (auto [i, reduction] : llvm::enumerate(nest.reductions))
      if (reduction.level == level)
        own.push_back(i);
    if (own.empty() && !nest.hasFullRootAt(level))
      return;
    auto clear = [&](ArrayRef<Value> rows) {
      if (!own.empty())
        overColumns([&](Value local) {
          for (size_t i : own)
            memref::StoreOp::create(b, loc,
                                    lower::neutral(b, loc, nest.reductions[i]),
                                    rows[i], local);
        });
    };
    auto addInto = [&](ArrayRef<Value> rows, size_t i, Value local, Value x) {
      Value sum = memref::LoadOp::create(b, loc, rows[i], local);
      sum = combine(nest.reductions[i], sum, x, /*anyOrder=*/false);
      memref::StoreOp::create(b, loc, sum, rows[i], local);
    };
    auto innermost = [&](ArrayRef<Value> rows) {
      overColumns([&](Value local) {
        SmallVector<Value> xs;
        for (size_t i : own)
          xs.push_back(elements.at(b, nest.reductions[i].op->getOperand(0),
                                   nest.reductions[i].index));
        for (auto [i, x] : llvm::zip_equal(own, xs))
          addInto(rows, i, local, x);
        storeRoots([&](const LoopNest::Root &root) {
          return root.isFull && root.level == level;
        });
      });
    };
    clear(totals);
    std::function<void(size_t)> nestFrom = [&](size_t r) {
      int64_t size = nest.sizes[reduced[r]];
      auto step = [&](Value iv) {
        ivs[reduced[r]] = iv;
        r + 1 == reduced.size() ? innermost(partial ? parts : totals)
                                : nestFrom(r + 1);
      };
      if (r + 1 < reduced.size() || !partial)
        return loop(size, step);
      loop((size + kPartialLength - 1) / kPartialLength, [&](Value chunk) {
        clear(parts);
        auto [first, end] = bounds(chunk, kPartialLength, size);
        loop(first, end, step);
        if (!own.empty())
          overColumns([&](Value local) {
            for (size_t i : own)
              addInto(totals, i, local,
                      memref::LoadOp::create(b, loc, parts[i], local));
          });
      });
    };
    nestFrom(0);
  };

  loop(body.begin, body.end, [&](Value item) {
    Value which = item;
    if (!outer.empty()) {
      which = arith::RemUIOp::create(b, loc, item, constant(blocks));
      item = arith::DivUIOp::create(b, loc, item, constant(blocks));
    }
    setIndices(outer, item);
    for (unsigned d : reduced)
      ivs[d] = constant(0); // not used by elements of kept indices
    std::tie(low, high) = bounds(which, block, columns);
    whereReadsAreKnown([&] {
      for (unsigned level = 0; level <= nest.levels; ++level)
        emitLevel(level);
      for (unsigned d : reduced)
        ivs[d] = constant(0);
      overColumns([&](Value) {
        storeRoots([](const LoopNest::Root &root) { return !root.isFull; });
      });
    });
  });
  return workOf(nest.sizeOf(outer) * blocks);
}
