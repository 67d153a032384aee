//===- CumsumAndSort.cpp - sums and order along a dimension ---------------===//
//
// cumsum: the item is a line along the dimension, or a block of lines that are
// neighbours, whose sums are in scratch memory. sort: the item is a line, whose
// sorted runs are merged into runs twice as long, back and forth between two
// parts of scratch memory; equal elements keep their order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/CumsumAndSort.h"
#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/KernelEmitter.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

//===----------------------------------------------------------------------===//
// cumsum
//===----------------------------------------------------------------------===//

/// Lines that are neighbours, of an item at most.
static constexpr int64_t kLinesOfItem = 256;

/// The memory of the sums of lines beside each other; null of lines alone.
static Value takeSums(AnchorKernel &kernel, CumsumOp op) {
  int64_t width = product(shapeOf(op.getX()).drop_front(op.getDim() + 1));
  if (width <= 1)
    return {};
  Type compute = scalar::computeType(op.getY().getType().getElementType());
  return kernel.scratch.take(kernel.code, {std::min(width, kLinesOfItem)},
                             lineSumType(compute));
}

static Work emitCumsum(AnchorKernel &kernel, CumsumOp op) {
  Code &code = kernel.code;
  ArrayRef<int64_t> shape = shapeOf(op.getX());
  int64_t dim = op.getDim(), size = shape[dim];
  ArrayRef<int64_t> before = shape.take_front(dim);
  ArrayRef<int64_t> after = shape.drop_front(dim + 1);
  int64_t width = product(after), block = std::min(width, kLinesOfItem);
  int64_t blocks = llvm::divideCeil(width, block);
  auto dims = dimensions(op.getContext(), shape.size());
  Type compute = scalar::computeType(op.getY().getType().getElementType());
  Type wide = lineSumType(compute);
  Value zero = code.index(0), nothing = code.number(wide, 0);

  // What follows from the sum before an element, and the element.
  auto step = [&](SmallVector<Value> index, Value sum) -> Value {
    Value x = kernel.element(0, dims, index, shape);
    Value next = scalar::add(code.b, code.loc, sum,
                             scalar::cast(code.b, code.loc, x, compute, wide));
    kernel.finish(index,
                  scalar::cast(code.b, code.loc, op.getExclusive() ? sum : next,
                               wide, compute));
    return next;
  };
  auto placeOf = [&](ArrayRef<Value> outer, Value i, ArrayRef<Value> inner) {
    SmallVector<Value> index(outer);
    index.push_back(op.getReverse() ? code.sub(code.index(size - 1), i) : i);
    llvm::append_range(index, inner);
    return index;
  };

  Value sums = takeSums(kernel, op);
  kernel.forEachItem([&](Value item) {
    SmallVector<Value> outer = split(code, code.div(item, blocks), before);
    if (width == 1) {
      SmallVector<Value> inner(after.size(), zero);
      code.loop(zero, code.index(size), 1, nothing,
                [&](Value i, ValueRange sum) -> Code::Values {
                  return {step(placeOf(outer, i, inner), sum[0])};
                });
      return;
    }
    Value first = code.mul(code.rem(item, blocks), block);
    Value columns = code.min(code.sub(code.index(width), first), block);
    code.loop(zero, columns, 1, [&](Value c) {
      memref::StoreOp::create(code.b, code.loc, nothing, sums, c);
    });
    code.loop(zero, code.index(size), 1, [&](Value i) {
      code.loop(zero, columns, 1, [&](Value c) {
        SmallVector<Value> inner = split(code, code.add(first, c), after);
        Value sum = memref::LoadOp::create(code.b, code.loc, sums, c);
        sum = step(placeOf(outer, i, inner), sum);
        memref::StoreOp::create(code.b, code.loc, sum, sums, c);
      });
    });
  });
  Work work;
  work.items = product(before) * blocks;
  work.grain = grainFor(work.items, 2.0 * size * block,
                        2.0 * size * block * elementBytes(compute));
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

namespace {
/// The lines of a sort in scratch memory: two of keys, two of their numbers.
struct Lines {
  Type element; ///< of the keys
  Value keys, numbers;
  Type numberType;
  int64_t size;

  Value position(Code &code, Value half, Value i) const {
    return code.add(code.mul(half, size), i);
  }
};
} // namespace

static Lines takeLines(AnchorKernel &kernel, SortOp op) {
  int64_t size = shapeOf(op.getX())[op.getDim()];
  // Keys as they are stored: bools are bytes.
  OpBuilder &b = kernel.code.b;
  Type element = op.getX().getType().getElementType();
  Type stored = element.isInteger(1) ? b.getI8Type() : element;
  bool isLong = size > std::numeric_limits<int32_t>::max();
  Type numberType = isLong ? b.getI64Type() : b.getI32Type();
  Value keys = kernel.scratch.take(kernel.code, {2 * size}, stored);
  Value numbers = kernel.scratch.take(kernel.code, {2 * size}, numberType);
  return {element, keys, numbers, numberType, size};
}

/// Merges the sorted runs [begin, middle) and [middle, end) of half `from` into
/// half `to`.
static void emitMerge(Code &code, SortOp op, const Lines &lines, Value from,
                      Value to, Value begin, Value middle, Value end) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  Type element = lines.element;
  auto key = [&](Value i) {
    return loadElement(b, loc, element, lines.keys,
                       lines.position(code, from, i));
  };
  Value lastLeft = code.sub(middle, code.index(1));
  Value lastRight = code.sub(end, code.index(1));
  code.loop(begin, end, 1, {begin, middle},
            [&](Value k, ValueRange next) -> Code::Values {
              Value left = next[0], right = next[1];
              Value x = key(code.min(left, lastLeft));
              Value y = key(code.min(right, lastRight));
              // The right one, where it is before the left one, or alone.
              Value isLeft = code.less(left, middle);
              Value isRight = code.less(right, end);
              Value takesRight = code.both(
                  isRight,
                  code.select(isLeft, standsBefore(code, op, y, x), isRight));
              Value taken = code.select(takesRight, right, left);
              Value number = memref::LoadOp::create(
                  b, loc, lines.numbers, lines.position(code, from, taken));
              Value at = lines.position(code, to, k);
              memref::StoreOp::create(b, loc, number, lines.numbers, at);
              storeElement(b, loc, element, code.select(takesRight, y, x),
                           lines.keys, at);
              Value one = code.index(1), none = code.index(0);
              return {code.add(left, code.select(takesRight, none, one)),
                      code.add(right, code.select(takesRight, one, none))};
            });
}

static Work emitSort(AnchorKernel &kernel, SortOp op) {
  Code &code = kernel.code;
  OpBuilder &b = code.b;
  Location loc = code.loc;
  ArrayRef<int64_t> shape = shapeOf(op.getX());
  int64_t dim = op.getDim(), size = shape[dim];
  SmallVector<int64_t> others(shape);
  others.erase(others.begin() + dim);
  auto dims = dimensions(op.getContext(), shape.size());
  Lines lines = takeLines(kernel, op);
  Type element = lines.element;
  Value zero = code.index(0), one = code.index(1);

  kernel.forEachItem([&](Value item) {
    SmallVector<Value> line = split(code, item, others);
    auto placeOf = [&](Value i) {
      SmallVector<Value> index(line);
      index.insert(index.begin() + dim, i);
      return index;
    };
    code.loop(zero, code.index(size), 1, [&](Value i) {
      Value x = kernel.element(0, dims, placeOf(i), shape);
      storeElement(b, loc, element, x, lines.keys, i);
      Value number = arith::IndexCastOp::create(b, loc, lines.numberType, i);
      memref::StoreOp::create(b, loc, number, lines.numbers, i);
    });
    int64_t rounds = llvm::Log2_64_Ceil(size);
    code.loop(zero, code.index(rounds), 1, {one, zero},
              [&](Value, ValueRange carried) -> Code::Values {
                Value length = carried[0], from = carried[1];
                Value to = code.sub(one, from), both = code.add(length, length);
                Value runs =
                    arith::CeilDivUIOp::create(b, loc, code.index(size), both);
                code.loop(zero, runs, 1, [&](Value run) {
                  Value begin = code.mul(run, both);
                  Value middle = code.min(code.add(begin, length), size);
                  Value end = code.min(code.add(begin, both), size);
                  emitMerge(code, op, lines, from, to, begin, middle, end);
                });
                return {both, to};
              });
    Value sorted = code.index(rounds % 2);
    code.loop(zero, code.index(size), 1, [&](Value i) {
      Value at = lines.position(code, sorted, i);
      Value number = memref::LoadOp::create(b, loc, lines.numbers, at);
      if (!lines.numberType.isInteger(64))
        number = arith::ExtSIOp::create(b, loc, b.getI64Type(), number);
      Value key = loadElement(b, loc, element, lines.keys, at);
      kernel.finish(placeOf(i), {key, number});
    });
  });
  Work work;
  work.items = product(others);
  double steps = static_cast<double>(size) * (llvm::Log2_64_Ceil(size) + 2);
  work.grain =
      grainFor(work.items, 4 * steps, steps * (elementBytes(element) + 4));
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

int64_t lower::cpu::scratchOfLines(AnchorKernel &kernel) {
  return kernel.countScratch([&] {
    if (auto op = dyn_cast<CumsumOp>(kernel.anchor))
      takeSums(kernel, op);
    else
      takeLines(kernel, cast<SortOp>(kernel.anchor));
  });
}

FailureOr<Work> lower::cpu::emitLines(AnchorKernel &kernel) {
  if (auto op = dyn_cast<CumsumOp>(kernel.anchor))
    return emitCumsum(kernel, op);
  return emitSort(kernel, cast<SortOp>(kernel.anchor));
}
