//===- CumsumAndSort.cpp - sums and order along a dimension for CUDA ------===//
//
// cumsum: a thread has a line, or a block where there are few of them, which
// adds 256 elements at a time. sort: a thread has an element, and counts those
// that stand before it; that is its place.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/CumsumAndSort.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cuda/KernelEmitter.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

//===----------------------------------------------------------------------===//
// cumsum
//===----------------------------------------------------------------------===//

namespace {
class Cumsum {
public:
  Cumsum(AnchorKernel &kernel, ThreadCode &code, CumsumOp op)
      : kernel(kernel), code(code), op(op), shape(shapeOf(op.getX())),
        dims(dimensions(op.getContext(), shape.size())),
        compute(scalar::computeType(op.getY().getType().getElementType())),
        wide(lineSumType(compute)) {}

  LaunchShape emit();

private:
  static constexpr int64_t threads = 256;

  LaunchShape emitThreads();
  LaunchShape emitBlocks();
  SmallVector<Value> placeOf(ArrayRef<Value> line, Value i);
  Value elementAt(ArrayRef<Value> index) {
    Value x = kernel.element(0, dims, index, shape);
    return scalar::cast(code.b, code.loc, x, compute, wide);
  }
  Value add(Value x, Value y) { return scalar::add(code.b, code.loc, x, y); }
  void finish(ArrayRef<Value> index, Value sum) {
    kernel.finish(index, scalar::cast(code.b, code.loc, sum, wide, compute));
  }
  Value sumOfWarp(Value x);

  AnchorKernel &kernel;
  ThreadCode &code;
  CumsumOp op;
  ArrayRef<int64_t> shape;
  SmallVector<AffineExpr> dims;
  Type compute, wide;
  SmallVector<int64_t> others;
  int64_t size = 0, lines = 0;
};
} // namespace

SmallVector<Value> Cumsum::placeOf(ArrayRef<Value> line, Value i) {
  SmallVector<Value> index(line);
  index.insert(index.begin() + op.getDim(),
               op.getReverse() ? code.sub(code.index(size - 1), i) : i);
  return index;
}

LaunchShape Cumsum::emit() {
  others.assign(shape.begin(), shape.end());
  others.erase(others.begin() + op.getDim());
  size = shape[op.getDim()];
  lines = product(others);
  constexpr int64_t manyLines = 4096, shortLine = 64;
  return lines >= manyLines || size <= shortLine ? emitThreads() : emitBlocks();
}

LaunchShape Cumsum::emitThreads() {
  LaunchShape launch = LaunchShape::over(lines);
  Value item = code.add(code.mul(code.block(), launch.block[0]), code.thread());
  code.when(code.less(item, code.index(lines)), [&] {
    SmallVector<Value> line = split(code, item, others);
    code.loop(code.index(0), code.index(size), 1, code.number(wide, 0),
              [&](Value i, ValueRange sum) -> Code::Values {
                SmallVector<Value> index = placeOf(line, i);
                Value next = add(sum[0], elementAt(index));
                finish(index, op.getExclusive() ? sum[0] : next);
                return {next};
              });
  });
  return launch;
}

/// The sum of a thread's number and those of the lower lanes.
Value Cumsum::sumOfWarp(Value x) {
  Value lane = code.lane();
  for (int64_t distance = 1; distance < warpSize; distance *= 2) {
    Value from = code.max(code.sub(lane, code.index(distance)), code.index(0));
    Value below = code.shuffleFrom(x, from);
    Value hasBelow = code.less(code.index(distance - 1), lane);
    x = code.select(hasBelow, add(x, below), x);
  }
  return x;
}

LaunchShape Cumsum::emitBlocks() {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  constexpr int64_t warps = threads / warpSize;
  Value sums = code.shared({warps}, wide);
  Value nothing = code.number(wide, 0);
  SmallVector<Value> line = split(code, code.block(), others);
  code.loop(code.index(0), code.index(size), threads, nothing,
            [&](Value base, ValueRange carried) -> Code::Values {
              Value i = code.add(base, code.thread());
              Value isElement = code.less(i, code.index(size));
              SmallVector<Value> index = placeOf(line, code.min(i, size - 1));
              Value x = code.select(isElement, elementAt(index), nothing);
              Value sum = sumOfWarp(x);
              code.barrier(); // the round before has read what is written now
              code.when(code.equal(code.lane(), code.index(warpSize - 1)), [&] {
                memref::StoreOp::create(b, loc, sum, sums, code.warp());
              });
              code.barrier();
              Value before = carried[0], all = carried[0];
              for (int64_t w = 0; w < warps; ++w) {
                Value part =
                    memref::LoadOp::create(b, loc, sums, code.index(w));
                all = add(all, part);
                Value isBelow = code.less(code.index(w), code.warp());
                before = code.select(isBelow, add(before, part), before);
              }
              Value own = sum;
              if (op.getExclusive()) {
                Value below = code.shuffleFrom(
                    sum, code.max(code.sub(code.lane(), code.index(1)),
                                  code.index(0)));
                own = code.select(code.equal(code.lane(), code.index(0)),
                                  nothing, below);
              }
              Value result = add(before, own);
              code.when(isElement, [&] { finish(index, result); });
              return {all};
            });
  LaunchShape launch;
  launch.block[0] = threads;
  launch.grid[0] = lines;
  return launch;
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

static LaunchShape emitSort(AnchorKernel &kernel, ThreadCode &code, SortOp op) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  ArrayRef<int64_t> shape = shapeOf(op.getX());
  int64_t dim = op.getDim(), size = shape[dim], items = product(shape);
  auto dims = dimensions(op.getContext(), shape.size());
  LaunchShape launch = LaunchShape::over(items);
  Value item = code.add(code.mul(code.block(), launch.block[0]), code.thread());
  code.when(code.less(item, code.index(items)), [&] {
    SmallVector<Value> index = split(code, item, shape);
    Value i = index[dim];
    Value x = kernel.element(0, dims, index, shape);
    Code::Values place = code.loop(
        code.index(0), code.index(size), 1, code.index(0),
        [&](Value j, ValueRange count) -> Code::Values {
          SmallVector<Value> other(index);
          other[dim] = j;
          Value y = kernel.element(0, dims, other, shape);
          Value isEarlier = code.less(j, i);
          // An earlier one stays before its equals.
          Value stands = code.select(
              isEarlier,
              arith::XOrIOp::create(b, loc, standsBefore(code, op, x, y),
                                    code.number(b.getI1Type(), 1)),
              standsBefore(code, op, y, x));
          return {code.add(count[0],
                           code.select(stands, code.index(1), code.index(0)))};
        });
    Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), i);
    index[dim] = place[0];
    kernel.finish(index, {x, number});
  });
  return launch;
}

FailureOr<LaunchShape> lower::cuda::emitLines(AnchorKernel &kernel,
                                              ThreadCode &code) {
  if (auto op = dyn_cast<CumsumOp>(kernel.anchor))
    return Cumsum(kernel, code, op).emit();
  return emitSort(kernel, code, cast<SortOp>(kernel.anchor));
}
