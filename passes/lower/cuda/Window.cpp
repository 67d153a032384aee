//===- Window.cpp - pooling for CUDA
//---------------------------------------===//
//
// A thread computes one element of the result from all taps of its window,
// but for the gradient of maximum pooling, whose elements go where an index
// says: there a block has a part of a plane in shared memory, and adds what
// belongs there in the order of the index.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Indices.h"
#include "passes/lower/cuda/KernelEmitter.h"

#include "ir/ops/Scalar.h"
#include "ir/ops/Window.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
/// The emission of one pooling op.
class WindowEmitter {
public:
  WindowEmitter(AnchorKernel &kernel, ThreadCode &code)
      : kernel(kernel), code(code),
        result(shapeOf(kernel.anchor->getResult(0))) {
    auto type = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
    element = scalar::computeType(type.getElementType());
  }

  LaunchShape maxPool(const Window2d &w);
  LaunchShape maxPoolGrad();
  LaunchShape maxPoolTake();
  LaunchShape avgPool(const Window2d &w, bool countPadding);
  LaunchShape avgPoolGrad(const Window2d &w, bool countPadding);

private:
  using Values = ThreadCode::Values;

  static SmallVector<int64_t> shapeOf(Value tensor) {
    return SmallVector<int64_t>(
        cast<RankedTensorType>(tensor.getType()).getShape());
  }
  /// The code of one element of the result, in image, channel, row and column
  /// of which the thread is.
  LaunchShape forEachElement(llvm::function_ref<void()> body);
  /// The element of an operand [N, C, H, W] in the thread's plane.
  Value load(unsigned number, Value h, Value w);
  /// Carries values from tap to tap of the window. `body` gets the tap's
  /// position in the input, inside of it, and whether it is really there (null:
  /// always).
  Values forEachTap(const Window2d &w, ValueRange init,
                    llvm::function_ref<Values(Value h, Value w, Value isThere,
                                              ValueRange carried)>
                        body);
  Value tapsInside(const Window2d &w, int d, Value output);
  /// What the sum of window (oh, ow) is divided by.
  Value divisor(const Window2d &w, bool countPadding, Value oh, Value ow);
  Value number(double x) { return code.number(element, x); }
  Value add(Value x, Value y) { return scalar::add(code.b, code.loc, x, y); }
  Value toIndex(Value integer) {
    return arith::IndexCastOp::create(code.b, code.loc, code.b.getIndexType(),
                                      integer);
  }
  Value toI32(Value index) {
    return arith::IndexCastOp::create(code.b, code.loc, code.b.getI32Type(),
                                      index);
  }

  AnchorKernel &kernel;
  ThreadCode &code;
  Type element; ///< in which elements are computed
  SmallVector<int64_t> result;
  Value image, channel, row, column;
};
} // namespace

LaunchShape WindowEmitter::forEachElement(llvm::function_ref<void()> body) {
  int64_t items = result[0] * result[1] * result[2] * result[3];
  LaunchShape shape = LaunchShape::over(items);
  Value item = code.add(code.mul(code.block(), shape.block[0]), code.thread());
  code.when(code.less(item, code.index(items)), [&] {
    column = code.rem(item, result[3]);
    Value rest = code.div(item, result[3]);
    row = code.rem(rest, result[2]);
    rest = code.div(rest, result[2]);
    channel = code.rem(rest, result[1]);
    image = code.div(rest, result[1]);
    body();
  });
  return shape;
}

Value WindowEmitter::load(unsigned number, Value h, Value w) {
  SmallVector<AffineExpr> index = dimensions(code.b.getContext(), 4);
  return kernel.element(number, index, {image, channel, h, w},
                        shapeOf(kernel.anchor->getOperand(number)));
}

WindowEmitter::Values WindowEmitter::forEachTap(
    const Window2d &w, ValueRange init,
    llvm::function_ref<Values(Value, Value, Value, ValueRange)> body) {
  // Of a direction without padding every tap is there.
  auto needsCheck = [&](int d) {
    return w.before[d] > 0 ||
           !w.inside(d, w.at(d, w.output[d] - 1, w.kernel[d] - 1));
  };
  auto position = [&](int d, Value out, Value tap) {
    return code.add(
        code.add(code.mul(out, w.stride[d]), code.mul(tap, w.dilation[d])),
        -w.before[d]);
  };
  auto clamp = [&](Value x, int d) {
    return code.min(code.max(x, code.index(0)), w.input[d] - 1);
  };
  Value zero = code.index(0);
  return code.loop(zero, code.index(w.kernel[0]), 1, init,
                   [&](Value kh, ValueRange rows) -> Values {
                     Value h = position(0, row, kh), isRow;
                     if (needsCheck(0)) {
                       isRow = code.below(h, w.input[0]);
                       h = clamp(h, 0);
                     }
                     return code.loop(
                         zero, code.index(w.kernel[1]), 1, rows,
                         [&](Value kw, ValueRange carried) -> Values {
                           Value x = position(1, column, kw), isThere = isRow;
                           if (needsCheck(1)) {
                             Value isColumn = code.below(x, w.input[1]);
                             isThere = isThere ? code.both(isThere, isColumn)
                                               : isColumn;
                             x = clamp(x, 1);
                           }
                           return body(h, x, isThere, carried);
                         });
                   });
}

/// How many taps of an output are inside of the input.
Value WindowEmitter::tapsInside(const Window2d &w, int d, Value output) {
  int64_t dilation = w.dilation[d];
  Value zero = code.index(0);
  Value shift =
      code.sub(code.index(w.before[d]), code.mul(output, w.stride[d]));
  Value low = code.div(code.add(code.max(zero, shift), dilation - 1), dilation);
  Value last = code.add(shift, w.input[d] - 1 + dilation);
  Value high = code.div(code.max(zero, last), dilation);
  return code.max(zero, code.sub(code.min(high, w.kernel[d]), low));
}

Value WindowEmitter::divisor(const Window2d &w, bool countPadding, Value oh,
                             Value ow) {
  if (countPadding)
    return number(static_cast<double>(w.kernel[0] * w.kernel[1]));
  Value count = code.mul(tapsInside(w, 0, oh), tapsInside(w, 1, ow));
  return arith::SIToFPOp::create(code.b, code.loc, element, toI32(count));
}

//===----------------------------------------------------------------------===//
// Maxima
//===----------------------------------------------------------------------===//

LaunchShape WindowEmitter::maxPool(const Window2d &w) {
  Type integer = code.b.getI32Type();
  auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(code.b, code.loc, predicate, x, y);
  };
  return forEachElement([&] {
    Values init{number(-std::numeric_limits<double>::infinity()),
                code.number(integer, -1)};
    Values best = forEachTap(
        w, init, [&](Value h, Value at, Value isThere, ValueRange carried) {
          Value x = load(0, h, at), old = carried[0];
          // The first element; a greater one; the first NaN.
          Value isFirst =
              arith::CmpIOp::create(code.b, code.loc, arith::CmpIPredicate::slt,
                                    carried[1], code.number(integer, 0));
          Value isNaN = code.both(compare(arith::CmpFPredicate::UNO, x, x),
                                  compare(arith::CmpFPredicate::ORD, old, old));
          Value takes = arith::OrIOp::create(
              code.b, code.loc,
              arith::OrIOp::create(code.b, code.loc, isFirst, isNaN),
              compare(arith::CmpFPredicate::OGT, x, old));
          if (isThere)
            takes = code.both(takes, isThere);
          Value position = toI32(code.add(code.mul(h, w.input[1]), at));
          return Values{code.select(takes, x, old),
                        code.select(takes, position, carried[1])};
        });
    kernel.finish({image, channel, row, column}, best);
  });
}

/// Several elements may go to one position; they are added in their order. In
/// each round the next element of each position is found (`turn`, the least
/// number after that of the round before) and added.
LaunchShape WindowEmitter::maxPoolGrad() {
  constexpr int64_t threads = 256, most = 40 * 1024;
  constexpr int32_t never = std::numeric_limits<int32_t>::max();
  OpBuilder &b = code.b;
  Location loc = code.loc;
  Type integer = b.getI32Type();
  SmallVector<int64_t> from = shapeOf(kernel.anchor->getOperand(0));
  int64_t size = result[2] * result[3], outputs = from[2] * from[3];
  int64_t bytes = element.getIntOrFloatBitWidth() / 8 + 8;
  int64_t part = std::min(size, most / bytes);
  int64_t parts = (size + part - 1) / part;

  Value zero = code.index(0), thread = code.thread();
  Value plane = code.block();
  Value first = code.mul(code.rem(plane, parts), part);
  plane = code.div(plane, parts);
  channel = code.rem(plane, result[1]);
  image = code.div(plane, result[1]);
  Value sums = code.shared({part}, element);
  Value turns = code.shared({2, part}, integer);
  Value length = code.min(code.sub(code.index(size), first), part);

  code.loop(thread, length, threads, [&](Value p) {
    memref::StoreOp::create(b, loc, number(0), sums, p);
    memref::StoreOp::create(b, loc, code.number(integer, never), turns,
                            ValueRange{zero, p});
    memref::StoreOp::create(b, loc, code.number(integer, -1), turns,
                            ValueRange{code.index(1), p});
  });
  code.barrier();
  // Calls `body(number, place in the part)` for the thread's elements that
  // belong here.
  auto forEach =
      [&](ValueRange init,
          llvm::function_ref<Values(Value, Value, ValueRange)> body) {
        return code.loop(
            thread, code.index(outputs), threads, init,
            [&](Value i, ValueRange carried) -> Values {
              Value at =
                  toIndex(load(1, code.div(i, from[3]), code.rem(i, from[3])));
              Value place = code.sub(at, first);
              Value isHere = code.both(
                  arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        place, length),
                  code.below(at, size));
              SmallVector<Type> types(carried.getTypes());
              auto branch = scf::IfOp::create(b, loc, types, isHere,
                                              /*withElse=*/!types.empty());
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPointToStart(&branch.getThenRegion().front());
              Values next = body(i, place, carried);
              if (types.empty())
                return {};
              scf::YieldOp::create(b, loc, next);
              b.setInsertionPointToStart(&branch.getElseRegion().front());
              scf::YieldOp::create(b, loc, carried);
              return Values(branch.getResults());
            });
      };
  Type flag = b.getI1Type(), index = b.getIndexType();
  Value yes = code.number(flag, 1), no = code.number(flag, 0);
  auto rounds = scf::WhileOp::create(b, loc, TypeRange{flag, index},
                                     ValueRange{yes, zero});
  OpBuilder::InsertionGuard guard(b);
  Block *before =
      b.createBlock(&rounds.getBefore(), {}, {flag, index}, {loc, loc});
  scf::ConditionOp::create(b, loc, before->getArgument(0),
                           before->getArguments());
  Block *after =
      b.createBlock(&rounds.getAfter(), {}, {flag, index}, {loc, loc});
  Value now = after->getArgument(1);
  Value last = code.sub(code.index(1), now);
  forEach({}, [&](Value i, Value place, ValueRange) -> Values {
    Value n = toI32(i);
    Value old = memref::LoadOp::create(b, loc, turns, ValueRange{last, place});
    Value isLater =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, n, old);
    code.when(isLater, [&] {
      memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::mins, n, turns,
                                  ValueRange{now, place});
    });
    return {};
  });
  code.barrier();
  Values any =
      forEach(no, [&](Value i, Value place, ValueRange carried) -> Values {
        Value turn =
            memref::LoadOp::create(b, loc, turns, ValueRange{now, place});
        Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            turn, toI32(i));
        auto own = scf::IfOp::create(b, loc, TypeRange{flag}, isOwn,
                                     /*withElse=*/true);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(&own.getElseRegion().front());
        scf::YieldOp::create(b, loc, no);
        b.setInsertionPointToStart(&own.getThenRegion().front());
        // What is left from an earlier round is not later than the last.
        Value old =
            memref::LoadOp::create(b, loc, turns, ValueRange{last, place});
        Value isTurn =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, turn, old);
        code.when(isTurn, [&] {
          Value dy = load(0, code.div(i, from[3]), code.rem(i, from[3]));
          Value sum = memref::LoadOp::create(b, loc, sums, place);
          memref::StoreOp::create(b, loc, add(sum, dy), sums, place);
          memref::StoreOp::create(b, loc, code.number(integer, never), turns,
                                  ValueRange{last, place});
        });
        scf::YieldOp::create(b, loc, isTurn);
        b.setInsertionPointAfter(own);
        return {arith::OrIOp::create(b, loc, carried[0], own.getResult(0))};
      });
  any = code.reduceBlock(any, threads, [&](size_t, Value x, Value y) -> Value {
    return arith::OrIOp::create(b, loc, x, y);
  });
  scf::YieldOp::create(b, loc, ValueRange{any[0], last});
  b.setInsertionPointAfter(rounds);
  code.loop(thread, length, threads, [&](Value p) {
    Value at = code.add(first, p);
    Value sum = memref::LoadOp::create(b, loc, sums, p);
    kernel.finish(
        {image, channel, code.div(at, result[3]), code.rem(at, result[3])},
        sum);
  });
  LaunchShape shape;
  shape.block[0] = threads;
  shape.grid[0] = result[0] * result[1] * parts;
  return shape;
}

LaunchShape WindowEmitter::maxPoolTake() {
  SmallVector<int64_t> shape = shapeOf(kernel.anchor->getOperand(0));
  return forEachElement([&] {
    Value at = toIndex(load(1, row, column));
    Value inside = code.below(at, shape[2] * shape[3]);
    Value safe = code.select(inside, at, code.index(0));
    Value x = load(0, code.div(safe, shape[3]), code.rem(safe, shape[3]));
    kernel.finish({image, channel, row, column},
                  code.select(inside, x, number(0)));
  });
}

//===----------------------------------------------------------------------===//
// Means
//===----------------------------------------------------------------------===//

LaunchShape WindowEmitter::avgPool(const Window2d &w, bool countPadding) {
  return forEachElement([&] {
    Values sum = forEachTap(
        w, number(0),
        [&](Value h, Value at, Value isThere, ValueRange carried) -> Values {
          Value next = add(carried[0], load(0, h, at));
          return {isThere ? code.select(isThere, next, carried[0]) : next};
        });
    Value mean = scalar::div(code.b, code.loc, sum[0],
                             divisor(w, countPadding, row, column));
    kernel.finish({image, channel, row, column}, mean);
  });
}

/// The windows that see an element of the input hand their shares to it.
LaunchShape WindowEmitter::avgPoolGrad(const Window2d &w, bool countPadding) {
  Value zero = code.index(0);
  // position = out * stride - before + tap
  auto outputAt = [&](int d, Value position, Value tap, Value &sees) {
    Value scaled = code.sub(code.add(position, w.before[d]), tap);
    Value out = code.div(code.max(scaled, zero), w.stride[d]);
    sees = code.both(code.below(out, w.output[d]),
                     code.equal(code.mul(out, w.stride[d]), scaled));
    return out;
  };
  return forEachElement([&] {
    Values sum = code.loop(
        zero, code.index(w.kernel[0]), 1, number(0),
        [&](Value kh, ValueRange rows) {
          Value seesRow;
          Value oh = outputAt(0, row, kh, seesRow);
          return code.loop(
              zero, code.index(w.kernel[1]), 1, rows,
              [&](Value kw, ValueRange carried) -> Values {
                Value sees;
                Value ow = outputAt(1, column, kw, sees);
                sees = code.both(sees, seesRow);
                Value dy = load(0, code.select(sees, oh, zero),
                                code.select(sees, ow, zero));
                Value share = scalar::div(code.b, code.loc, dy,
                                          divisor(w, countPadding, oh, ow));
                return {code.select(sees, add(carried[0], share), carried[0])};
              });
        });
    kernel.finish({image, channel, row, column}, sum[0]);
  });
}

FailureOr<LaunchShape> lower::cuda::emitWindow(AnchorKernel &kernel,
                                               ThreadCode &code) {
  Operation *op = kernel.anchor;
  WindowEmitter emitter(kernel, code);
  if (auto pool = dyn_cast<MaxPool2dOp>(op))
    return emitter.maxPool(pool.getWindow());
  if (isa<MaxPool2dGradOp>(op))
    return emitter.maxPoolGrad();
  if (isa<MaxPool2dTakeOp>(op))
    return emitter.maxPoolTake();
  if (auto pool = dyn_cast<AvgPool2dOp>(op))
    return emitter.avgPool(pool.getWindow(), pool.getCountIncludePad());
  auto pool = cast<AvgPool2dGradOp>(op);
  return emitter.avgPoolGrad(pool.getWindow(), pool.getCountIncludePad());
}
