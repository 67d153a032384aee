//===- Indexed.cpp - rows of tables by index for CUDA ---------------------===//
//
// take: a thread copies an element. take_grad and scatter: a block has a part
// of the table (some rows, some columns) in shared memory and looks through all
// indices, in their order, for rows of its own; one thread has a column, so
// that sums have one order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/ScatterParts.h"
#include "passes/lower/cuda/KernelEmitter.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static LaunchShape emitTake(AnchorKernel &kernel, ThreadCode &code, TakeOp op) {
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
  // Neighbours in a row are a thread's, and so vectors of memory.
  int64_t width = product(row);
  int64_t vector = std::min<int64_t>(16 / elementBytes(element), 8);
  while (vector > 1 && (row.empty() || row.back() % vector != 0))
    vector /= 2;
  int64_t items = product(indices) * width / vector;
  LaunchShape shape = LaunchShape::over(items);
  Value item = code.add(code.mul(code.block(), shape.block[0]), code.thread());
  code.when(code.less(item, code.index(items)), [&] {
    Value first = code.mul(code.rem(item, width / vector), vector);
    SmallVector<Value> at =
        split(code, code.div(item, width / vector), indices);
    Value number = toIndex(code, kernel.element(1, indexDims, at, indices));
    Value inside = code.below(number, table[0]);
    Value from = code.select(inside, number, code.index(0));
    SmallVector<Value> rest = split(code, first, row);
    SmallVector<std::pair<SmallVector<Value>, Value>> elements;
    for (int64_t v = 0; v < vector; ++v) {
      SmallVector<Value> place{from}, to(at), column(rest);
      if (v > 0)
        column.back() = code.add(column.back(), v);
      llvm::append_range(place, column);
      llvm::append_range(to, column);
      Value x = kernel.element(0, tableDims, place, table);
      elements.push_back(
          {to, code.select(inside, x, code.number(compute, outside))});
    }
    for (auto &[to, x] : elements)
      kernel.finish(to, x);
  });
  return shape;
}

namespace {
/// How the table is divided.
struct Parts {
  int64_t columns; ///< of a part; a power of two
  int64_t rows;    ///< of a part
  int64_t across, down;
};
} // namespace

static LaunchShape emitScatter(AnchorKernel &kernel, ThreadCode &code,
                               const ScatterParts &scatter) {
  constexpr int64_t threads = 256, partBytes = 40 * 1024;
  OpBuilder &b = code.b;
  Location loc = code.loc;
  ArrayRef<int64_t> table = scatter.table, indices = scatter.indices;
  ArrayRef<int64_t> row = table.drop_front();
  MLIRContext *context = kernel.anchor->getContext();
  int64_t rows = table[0], width = product(row), count = product(indices);
  Type i32 = b.getI32Type();

  Parts parts;
  parts.columns = std::min<int64_t>(threads, llvm::PowerOf2Ceil(width));
  parts.across = llvm::divideCeil(width, parts.columns);
  parts.rows = std::clamp<int64_t>(
      partBytes / (parts.columns * elementBytes(scatter.stored)), 1, rows);
  parts.down = llvm::divideCeil(rows, parts.rows);
  // Threads beyond the columns take other rows.
  int64_t groups = threads / parts.columns;

  Value zero = code.index(0), thread = code.thread();
  Value local = code.rem(thread, parts.columns);
  Value group = code.div(thread, parts.columns);
  Value firstRow = code.mul(code.div(code.block(), parts.across), parts.rows);
  Value column = code.add(
      code.mul(code.rem(code.block(), parts.across), parts.columns), local);
  Value height = code.min(code.sub(code.index(rows), firstRow), parts.rows);
  Value isColumn;
  if (width % parts.columns != 0) {
    isColumn = code.less(column, code.index(width));
    column = code.min(column, width - 1);
  }
  Value values = code.shared({parts.rows * parts.columns}, scatter.stored);
  Value found = code.shared({threads}, i32);            // the row of each index
  Value masks = code.shared({threads / warpSize}, i32); // which are here

  // The updates and the indices in dimensions (number of the index, column).
  SmallVector<int64_t> sizes{count, width};
  auto dims = dimensions(context, 2);
  auto indexPlace = delinearize(dims[0], indices, sizes);
  SmallVector<AffineExpr> updatePlace(indexPlace);
  llvm::append_range(updatePlace, delinearize(dims[1], row, sizes));
  auto tableDims = dimensions(context, table.size());

  auto forMyRows = [&](llvm::function_ref<void(Value r)> body) {
    code.loop(group, height, groups, body);
  };
  auto placeOf = [&](Value r) {
    return code.add(code.mul(r, parts.columns), local);
  };
  auto indexOf = [&](Value r) {
    SmallVector<Value> index{code.add(firstRow, r)};
    llvm::append_range(index, split(code, column, row));
    return index;
  };
  forMyRows([&](Value r) {
    storeElement(b, loc, scatter.kept,
                 scatter.before(kernel, tableDims, indexOf(r)), values,
                 placeOf(r));
  });
  code.loop(zero, code.index(count), threads, [&](Value base) {
    Value i = code.add(base, thread);
    Value isIndex = code.less(i, code.index(count));
    i = code.min(i, count - 1);
    Value number = toIndex(code, kernel.element(scatter.indexOperand,
                                                indexPlace, {i, zero}, sizes));
    Value r = code.sub(number, firstRow);
    Value isHere = code.both(
        isIndex,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, r, height));
    Value mask = NVVM::VoteSyncOp::create(b, loc, i32, code.number(i32, -1),
                                          isHere, NVVM::VoteSyncKind::ballot);
    code.barrier(); // the round before has read what is written now
    memref::StoreOp::create(b, loc, arith::IndexCastOp::create(b, loc, i32, r),
                            found, thread);
    code.when(code.equal(code.lane(), zero), [&] {
      memref::StoreOp::create(b, loc, mask, masks, code.warp());
    });
    code.barrier();
    code.loop(zero, code.index(threads / warpSize), 1, [&](Value w) {
      Value set = memref::LoadOp::create(b, loc, masks, w);
      Value hits = toIndex(code, math::CtPopOp::create(b, loc, set));
      code.loop(
          zero, hits, 1, set,
          [&](Value, ValueRange carried) -> ThreadCode::Values {
            Value lowest = toIndex(
                code, math::CountTrailingZerosOp::create(b, loc, carried[0]));
            Value n = code.add(code.mul(w, warpSize), lowest);
            Value r = toIndex(code, memref::LoadOp::create(b, loc, found, n));
            Value isMine = code.equal(code.rem(r, groups), group);
            if (isColumn)
              isMine = code.both(isMine, isColumn);
            code.when(isMine, [&] {
              Value update = kernel.element(scatter.updateOperand, updatePlace,
                                            {code.add(base, n), column}, sizes);
              Value at = placeOf(r);
              Value x = loadElement(b, loc, scatter.kept, values, at);
              storeElement(b, loc, scatter.kept,
                           scatter.combined(code, x, update), values, at);
            });
            Value less =
                arith::SubIOp::create(b, loc, carried[0], code.number(i32, 1));
            return {arith::AndIOp::create(b, loc, carried[0], less)};
          });
    });
  });
  forMyRows([&](Value r) {
    Value x = loadElement(b, loc, scatter.kept, values, placeOf(r));
    auto finish = [&] { kernel.finish(indexOf(r), x); };
    if (isColumn)
      code.when(isColumn, finish);
    else
      finish();
  });
  LaunchShape shape;
  shape.block[0] = threads;
  shape.grid[0] = parts.across * parts.down;
  return shape;
}

FailureOr<LaunchShape> lower::cuda::emitIndexed(AnchorKernel &kernel,
                                                ThreadCode &code) {
  if (auto op = dyn_cast<TakeOp>(kernel.anchor))
    return emitTake(kernel, code, op);
  return emitScatter(kernel, code, ScatterParts::of(kernel.anchor));
}
