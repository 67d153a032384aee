//===- Indexed.cpp - rows of tables by index ------------------------------===//
//
// take: the item is one index, whose row is copied. take_grad and scatter: the
// item is a block of the table's rows, which collects its rows from all indices
// in their order, so that no two threads meet and sums have one order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/ScatterParts.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/target/CpuCaches.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

/// Calls `body` for every index of `shape`, in loops around each other.
static void forEachIndex(Code &code, ArrayRef<int64_t> shape,
                         SmallVector<Value> &index,
                         llvm::function_ref<void()> body) {
  if (shape.empty())
    return body();
  code.loop(code.index(0), code.index(shape[0]), 1, [&](Value i) {
    index.push_back(i);
    forEachIndex(code, shape.drop_front(), index, body);
    index.pop_back();
  });
}

static Work emitTake(AnchorKernel &kernel, TakeOp op) {
  Code &code = kernel.code;
  ArrayRef<int64_t> table = shapeOf(op.getTable());
  ArrayRef<int64_t> indices = shapeOf(op.getIndices());
  ArrayRef<int64_t> row = table.drop_front();
  auto tableDims = dimensions(op.getContext(), table.size());
  auto indexDims = dimensions(op.getContext(), indices.size());
  Type element = op.getY().getType().getElementType();
  Type compute = scalar::computeType(element);
  // A row of integers that is not there is 0.
  double outside =
      isa<FloatType>(compute) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  kernel.forEachItem([&](Value item) {
    SmallVector<Value> at = split(code, item, indices);
    Value number = toIndex(code, kernel.element(1, indexDims, at, indices));
    Value inside = code.below(number, table[0]);
    SmallVector<Value> from{code.select(inside, number, code.index(0))};
    SmallVector<Value> rest;
    forEachIndex(code, row, rest, [&] {
      SmallVector<Value> place(from), to(at);
      llvm::append_range(place, rest);
      llvm::append_range(to, rest);
      Value x = kernel.element(0, tableDims, place, table);
      kernel.finish(to, code.select(inside, x, code.number(compute, outside)));
    });
  });
  Work work;
  work.items = product(indices);
  work.grain =
      grainFor(work.items, 0, 2.0 * product(row) * elementBytes(element));
  return work;
}

/// How many of a table's rows are a block, which collects its rows of `count`
/// from all indices. Blocks fit the second-level cache, and there are enough
/// for all threads; but of narrow rows there are few, since looking through the
/// indices is most of the work then.
static int64_t rowsOfBlock(int64_t rows, int64_t width, int64_t rowBytes,
                           int64_t count) {
  constexpr int64_t many = 16, few = 4;
  double work = static_cast<double>(rows + count) * width;
  bool isNarrow = work < static_cast<double>(many * count);
  int64_t blockBytes = isNarrow ? caches::kPast : caches::kSecond / 2;
  return std::clamp<int64_t>(blockBytes / rowBytes, 1,
                             llvm::divideCeil(rows, isNarrow ? few : many));
}

static int64_t rowsOfBlock(AnchorKernel &kernel, const ScatterParts &parts) {
  int64_t width = product(parts.table.drop_front());
  if (int64_t asked = ScheduleOverride::of(kernel.kernel)[ScheduleKey::Block])
    return std::min(asked, std::max<int64_t>(parts.table[0], 1));
  return rowsOfBlock(parts.table[0], width, width * elementBytes(parts.stored),
                     product(parts.indices));
}

/// The memory of the rows of a block.
static Value takeBlock(AnchorKernel &kernel, const ScatterParts &parts) {
  int64_t width = product(parts.table.drop_front());
  return kernel.scratch.take(kernel.code, {rowsOfBlock(kernel, parts) * width},
                             parts.stored);
}

static Work emitScatter(AnchorKernel &kernel, const ScatterParts &parts) {
  Code &code = kernel.code;
  ArrayRef<int64_t> table = parts.table, indices = parts.indices;
  ArrayRef<int64_t> row = table.drop_front();
  MLIRContext *context = kernel.anchor->getContext();
  int64_t rows = table[0], width = product(row), count = product(indices);

  int64_t rowBytes = width * elementBytes(parts.stored);
  int64_t block = rowsOfBlock(kernel, parts);
  Value values = takeBlock(kernel, parts);
  Value zero = code.index(0);
  auto load = [&](Value at) {
    return loadElement(code.b, code.loc, parts.kept, values, at);
  };
  auto store = [&](Value x, Value at) {
    storeElement(code.b, code.loc, parts.kept, x, values, at);
  };

  // The updates and the indices in dimensions (number of the index, column).
  SmallVector<int64_t> sizes{count, width};
  auto dims = dimensions(context, 2);
  auto indexPlace = delinearize(dims[0], indices, sizes);
  SmallVector<AffineExpr> updatePlace(indexPlace);
  llvm::append_range(updatePlace, delinearize(dims[1], row, sizes));
  auto tableDims = dimensions(context, table.size());

  kernel.forEachItem([&](Value item) {
    Value first = code.mul(item, block);
    Value size = code.min(code.sub(code.index(rows), first), block);
    // For each element of the block: its place in `values` and in the table.
    auto forElements =
        [&](llvm::function_ref<void(Value at, ArrayRef<Value> index)> body) {
          code.loop(zero, size, 1, [&](Value r) {
            SmallVector<Value> index{code.add(first, r)};
            forEachIndex(code, row, index, [&] {
              Value column = zero;
              for (auto [i, length] :
                   llvm::zip_equal(ArrayRef(index).drop_front(), row))
                column = code.add(code.mul(column, length), i);
              body(code.add(code.mul(r, width), column), index);
            });
          });
        };
    forElements([&](Value at, ArrayRef<Value> index) {
      store(parts.before(kernel, tableDims, index), at);
    });
    code.loop(zero, code.index(count), 1, [&](Value i) {
      Value number =
          toIndex(code, kernel.element(parts.indexOperand, indexPlace,
                                       {i, zero}, sizes));
      Value r = code.sub(number, first);
      // Within the block: this many rows from its first on.
      Value inside = arith::CmpIOp::create(code.b, code.loc,
                                           arith::CmpIPredicate::ult, r, size);
      code.when(inside, [&] {
        code.loop(zero, code.index(width), 1, [&](Value column) {
          Value update = kernel.element(parts.updateOperand, updatePlace,
                                        {i, column}, sizes);
          Value at = code.add(code.mul(r, width), column);
          store(parts.combined(code, load(at), update), at);
        });
      });
    });
    forElements([&](Value at, ArrayRef<Value> index) {
      kernel.finish(index, load(at));
    });
  });
  Work work;
  work.items = llvm::divideCeil(rows, block);
  double share = static_cast<double>(count) / work.items;
  work.grain = grainFor(work.items, count + share * width,
                        3.0 * (block + share) * rowBytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

int64_t lower::cpu::scratchOfIndexed(AnchorKernel &kernel) {
  if (isa<TakeOp>(kernel.anchor))
    return 0;
  return kernel.countScratch(
      [&] { takeBlock(kernel, ScatterParts::of(kernel.anchor)); });
}

ScheduleOverride lower::cpu::cutIndexed(AnchorKernel &kernel) {
  if (isa<TakeOp>(kernel.anchor))
    return {};
  return ScheduleOverride(
      {{ScheduleKey::Block,
        rowsOfBlock(kernel, ScatterParts::of(kernel.anchor))}});
}

FailureOr<Work> lower::cpu::emitIndexed(AnchorKernel &kernel) {
  if (auto op = dyn_cast<TakeOp>(kernel.anchor))
    return emitTake(kernel, op);
  return emitScatter(kernel, ScatterParts::of(kernel.anchor));
}
