//===- WindowPack.cpp - what windows see, as the panels of a product ------===//
#include "passes/lower/cpu/convolution/WindowPack.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/convolution/StrideTwoLoad.h"

#include "ir/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

WindowPack::WindowPack(AnchorKernel &kernel, unsigned number,
                       const Convolution2d &conv, Lanes lanes)
    : kernel(kernel), code(kernel.code), number(number), window(conv.window),
      lanes(lanes) {
  bool seesOutput = lanes == Product::InputPixels;
  planes = seesOutput ? conv.filtersPerGroup() : conv.channelsPerGroup();
  taps = window.kernel[0] * window.kernel[1];
  seen = seesOutput ? window.output : window.input;
  grid = seesOutput ? window.input : window.output;
  dims = dimensions(kernel.anchor->getContext(), 4);
  sizes = seesOutput ? conv.outputShape() : conv.inputShape();
  operand = kernel.operand(number, dims, sizes);
}

void WindowPack::enter(Value image, Value group) {
  atImage = image;
  firstPlane = code.mul(group, planes);
}

bool WindowPack::isSmall() const {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 4;
  int64_t span = planes * std::abs(operand.stride(1)) +
                 seen[0] * std::abs(operand.stride(2)) +
                 seen[1] * std::abs(operand.stride(3));
  return span < limit && grid[0] * grid[1] < limit && N < limit;
}

void WindowPack::bindB(Gemm &gemm) {
  type = gemm.type;
  N = gemm.N;
  tapIsK1 = taps > 1;
  bool vectors = operand.isAffine() && isSmall();
  gemm.pack = [this, vectors](Code &, const GemmPanel &panel) {
    if (isTransposed())
      packTransposed(panel);
    else if (!vectors)
      packElements(panel);
    else if (lanes == Product::Taps)
      packTaps(panel);
    else
      packPixels(panel);
  };
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// `value` of the type of `like`: index, or a vector of i32.
static Value constantLike(Code &code, Value like, int64_t value) {
  Builder &b = code.b;
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return arith::ConstantOp::create(
        code.b, code.loc,
        DenseElementsAttr::get(
            type, b.getI32IntegerAttr(static_cast<int32_t>(value))));
  return code.index(value);
}
static Value times(Code &code, Value x, int64_t y) {
  return y == 1 ? x : code.mul(x, constantLike(code, x, y));
}
static Value plus(Code &code, Value x, int64_t y) {
  return y == 0 ? x : code.add(x, constantLike(code, x, y));
}
static Value quotient(Code &code, Value x, int64_t y) {
  return y == 1 ? x
                : code.b.createOrFold<arith::DivUIOp>(code.loc, x,
                                                      constantLike(code, x, y));
}
static Value remainder(Code &code, Value x, int64_t y) {
  return y == 1 ? constantLike(code, x, 0)
                : code.b.createOrFold<arith::RemUIOp>(code.loc, x,
                                                      constantLike(code, x, y));
}
/// An index as a vector of equal i32, and first, first + 1, ...
static Value broadcast(Code &code, Value index, int64_t lanes) {
  Value narrow =
      arith::IndexCastOp::create(code.b, code.loc, code.b.getI32Type(), index);
  return code.splat(narrow, lanes);
}
static Value lanesFrom(Code &code, Value first, int64_t lanes) {
  SmallVector<int32_t> steps;
  for (int32_t i = 0; i < lanes; ++i)
    steps.push_back(i);
  auto type = VectorType::get({lanes}, code.b.getI32Type());
  Value step = arith::ConstantOp::create(
      code.b, code.loc, DenseElementsAttr::get(type, ArrayRef(steps)));
  return code.add(broadcast(code, first, lanes), step);
}

WindowPack::Seen WindowPack::look(int d, Value pixel, Value tap) {
  int64_t stride = window.stride[d], dilation = window.dilation[d];
  auto below = [&](Value at) {
    // Unsigned: what is negative is not below.
    return arith::CmpIOp::create(code.b, code.loc, arith::CmpIPredicate::ult,
                                 at, constantLike(code, at, seen[d]));
  };
  if (lanes != Product::InputPixels) {
    Value at = plus(
        code, code.add(times(code, pixel, stride), times(code, tap, dilation)),
        -window.before[d]);
    return {at, below(at)};
  }
  // pixel = at * stride - before + tap * dilation
  Value scaled =
      code.sub(plus(code, pixel, window.before[d]), times(code, tap, dilation));
  Value at = quotient(code, scaled, stride);
  Value inside = below(at);
  if (stride != 1)
    inside = code.both(inside, code.equal(times(code, at, stride), scaled));
  return {at, inside};
}

Value WindowPack::position(Value image, Value plane, Value y, Value x) {
  return operand.at(code, {image, plane, y, x});
}

void WindowPack::forEachPlane(const GemmPanel &panel, Value tap,
                              llvm::function_ref<void(Value, Value)> body) {
  if (tapIsK1) {
    code.loop(panel.k0, panel.k0End, 1, [&](Value plane) {
      body(code.add(firstPlane, plane), panel.row(code, plane, tap));
    });
    return;
  }
  code.loop(panel.k1, panel.k1End, 1, [&](Value plane) {
    body(code.add(firstPlane, plane), panel.row(code, panel.k0, plane));
  });
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

/// Where the lanes look does not depend on the plane: tap by tap, then plane by
/// plane.
void WindowPack::packPixels(const GemmPanel &panel) {
  int64_t count = panel.lanes, vectors = panel.width / count;
  int64_t yStride = operand.stride(2), xStride = operand.stride(3);
  bool neighbours = xStride == 1 && yStride == seen[1] && grid[1] == seen[1] &&
                    window.stride == Window2d::Pair{1, 1};
  SmallVector<Value> y, x;
  for (int64_t v = 0; v < vectors; ++v) {
    Value pixel = lanesFrom(code, code.add(panel.n, v * count), count);
    y.push_back(quotient(code, pixel, grid[1]));
    x.push_back(remainder(code, pixel, grid[1]));
  }
  Value tapBegin = tapIsK1 ? panel.k1 : code.index(0);
  Value tapEnd = tapIsK1 ? panel.k1End : code.index(1);
  code.loop(tapBegin, tapEnd, 1, [&](Value tap) {
    Value tapY = code.div(tap, window.kernel[1]);
    Value tapX = code.rem(tap, window.kernel[1]);
    SmallVector<Value> masks, offsets;
    for (int64_t v = 0; v < vectors; ++v) {
      Seen sy = look(0, y[v], broadcast(code, tapY, count));
      Seen sx = look(1, x[v], broadcast(code, tapX, count));
      masks.push_back(code.both(sy.inside, sx.inside));
      offsets.push_back(
          code.add(times(code, sy.at, yStride), times(code, sx.at, xStride)));
    }
    // Pixel 0 sees this position; its neighbours see its neighbours.
    Value shift =
        code.add(times(code, look(0, code.index(0), tapY).at, yStride),
                 look(1, code.index(0), tapX).at);
    Value first = code.add(shift, panel.n);
    Value zeros = code.zeros(operand.element, count);
    auto vectorType = cast<VectorType>(zeros.getType());
    forEachPlane(panel, tap, [&](Value plane, Value row) {
      Value base = position(atImage, plane, {}, {});
      for (int64_t v = 0; v < vectors; ++v) {
        Value seenLanes =
            neighbours ? code.load(operand.memref,
                                   code.add(code.add(base, first), v * count),
                                   count, masks[v])
                       : vector::GatherOp::create(code.b, code.loc, vectorType,
                                                  operand.memref, base,
                                                  offsets[v], masks[v], zeros);
        code.store(code.widen(seenLanes, type), panel.memref,
                   {row, code.index(v * count)});
      }
    });
  });
}

/// Each lane looks at its own tap, of its own channel; pixel by pixel.
void WindowPack::packTaps(const GemmPanel &panel) {
  int64_t count = panel.lanes, vectors = panel.width / count;
  int64_t yStride = operand.stride(2), xStride = operand.stride(3);
  SmallVector<Value> tapY, tapX, offsets;
  for (int64_t v = 0; v < vectors; ++v) {
    Value line = lanesFrom(code, code.add(panel.n, v * count), count);
    if (N % count != 0) // lanes that are not there: again the last
      line = code.min(line, constantLike(code, line, N - 1));
    Value channel = quotient(code, line, taps);
    Value tap = remainder(code, line, taps);
    tapY.push_back(quotient(code, tap, window.kernel[1]));
    tapX.push_back(remainder(code, tap, window.kernel[1]));
    Value offset = times(code, channel, operand.stride(1));
    offset =
        code.add(offset, times(code, tapY[v], window.dilation[0] * yStride));
    offset =
        code.add(offset, times(code, tapX[v], window.dilation[1] * xStride));
    offsets.push_back(offset);
  }
  Value zeros = code.zeros(operand.element, count);
  auto vectorType = cast<VectorType>(zeros.getType());
  code.loop(panel.k0, panel.k0End, 1, [&](Value image) {
    Value base = position(image, firstPlane, {}, {});
    code.loop(panel.k1, panel.k1End, 1, [&](Value pixel) {
      Value y = code.div(pixel, grid[1]), x = code.rem(pixel, grid[1]);
      // The first tap's position, which may be outside.
      Value top = code.add(code.mul(y, window.stride[0]), -window.before[0]);
      Value left = code.add(code.mul(x, window.stride[1]), -window.before[1]);
      Value from = code.add(code.add(base, code.mul(top, yStride)),
                            code.mul(left, xStride));
      Value row = panel.row(code, image, pixel);
      for (int64_t v = 0; v < vectors; ++v) {
        Seen sy = look(0, broadcast(code, y, count), tapY[v]);
        Seen sx = look(1, broadcast(code, x, count), tapX[v]);
        Value seenLanes = vector::GatherOp::create(
            code.b, code.loc, vectorType, operand.memref, from, offsets[v],
            code.both(sy.inside, sx.inside), zeros);
        code.store(code.widen(seenLanes, type), panel.memref,
                   {row, code.index(v * count)});
      }
    });
  });
}

bool WindowPack::isTransposed() const {
  int64_t lanes = kernel.target.lanes(scalar::computeType(operand.element));
  return this->lanes == Product::Taps && operand.isAffine() &&
         operand.stride(3) == 1 && operand.stride(2) == seen[1] &&
         readsEverySecondPixel(window, lanes) && grid[0] * grid[1] % lanes == 0;
}

/// Squares of the pixels of some planes are read along the pixels, and turned.
void WindowPack::packTransposed(const GemmPanel &panel) {
  int64_t count = panel.lanes;
  auto square = [&](Value column, Value image, Value pixel) {
    Value y = code.mul(code.div(pixel, grid[1]), 2);
    Value x = code.mul(code.rem(pixel, grid[1]), 2);
    Code::Values columns;
    for (int64_t i = 0; i < count; ++i) {
      Value plane = code.add(code.add(panel.n, column), i);
      if (N % count != 0) // planes that are not there: again the last
        plane = code.min(plane, N - 1);
      Value from = position(image, code.add(firstPlane, plane), y, x);
      columns.push_back(
          loadStrideTwo(code, operand, from, grid[1], count, type));
    }
    panel.storeTurned(code, columns, image, pixel, column);
  };
  code.loop(code.index(0), panel.columns, count, [&](Value column) {
    code.loop(panel.k0, panel.k0End, 1, [&](Value image) {
      code.loop(panel.k1, panel.k1End, count,
                [&](Value pixel) { square(column, image, pixel); });
    });
  });
}

void WindowPack::packElements(const GemmPanel &panel) {
  auto place = [&](Value k0, Value k1, Value n) {
    Value image = atImage, plane, tap, pixel = n;
    if (lanes == Product::Taps) {
      image = k0;
      pixel = k1;
      plane = code.div(n, taps);
      tap = code.rem(n, taps);
    } else {
      plane = tapIsK1 ? k0 : k1;
      tap = tapIsK1 ? k1 : code.index(0);
    }
    Seen y = look(0, code.div(pixel, grid[1]), code.div(tap, window.kernel[1]));
    Seen x = look(1, code.rem(pixel, grid[1]), code.rem(tap, window.kernel[1]));
    auto branch = scf::IfOp::create(code.b, code.loc, TypeRange{type},
                                    code.both(y.inside, x.inside),
                                    /*withElse=*/true);
    OpBuilder::InsertionGuard guard(code.b);
    code.b.setInsertionPointToStart(&branch.getThenRegion().front());
    Value at[] = {image, code.add(firstPlane, plane), y.at, x.at};
    scf::YieldOp::create(code.b, code.loc,
                         kernel.element(number, dims, at, sizes));
    code.b.setInsertionPointToStart(&branch.getElseRegion().front());
    scf::YieldOp::create(code.b, code.loc, code.number(type, 0));
    return branch.getResult(0);
  };
  code.loop(panel.k0, panel.k0End, 1, [&](Value k0) {
    code.loop(panel.k1, panel.k1End, 1, [&](Value k1) {
      Value row = panel.row(code, k0, k1);
      code.loop(code.index(0), panel.columns, 1, [&](Value column) {
        Value x = place(k0, k1, code.add(panel.n, column));
        memref::StoreOp::create(code.b, code.loc, x, panel.memref,
                                ValueRange{row, column});
      });
    });
  });
}
