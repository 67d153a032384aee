//===- GemmWindow.cpp - what windows see, as a factor of a product --------===//
#include "passes/lower/cuda/convolution/GemmWindow.h"
#include "passes/lower/common/Indices.h"

#include "ir/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

WindowFactor::WindowFactor(AnchorKernel &kernel, ThreadCode &code,
                           const ConvolutionProduct &product)
    : kernel(kernel), code(code), product(product),
      window(product.conv.window) {
  const Convolution2d &conv = product.conv;
  bool seesOutput = product.lanes == ConvolutionProduct::InputPixels;
  planes = seesOutput ? conv.filtersPerGroup() : conv.channelsPerGroup();
  taps = window.kernel[0] * window.kernel[1];
  seen = seesOutput ? window.output : window.input;
  grid = seesOutput ? window.input : window.output;
  dims = dimensions(kernel.anchor->getContext(), 4);
  sizes = seesOutput ? conv.outputShape() : conv.inputShape();
  operand = kernel.operand(product.bNumber, dims, sizes);
  inMemory = operand.isAffine();
  element = inMemory ? operand.element : scalar::computeType(operand.element);
  alongK = product.lanes == ConvolutionProduct::Taps;

  constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 4;
  int64_t span = 0;
  if (inMemory)
    for (unsigned d = 0; d < 4; ++d)
      span += sizes[d] * std::abs(operand.stride(d));
  int64_t reach = 0;
  for (int d = 0; d < 2; ++d)
    reach += seen[d] + (grid[d] + window.kernel[d]) *
                           std::max(window.stride[d], window.dilation[d]);
  isSmall = span < limit && reach < limit && conv.batch < limit &&
            conv.batch * grid[0] * grid[1] < limit && planes * taps < limit;
  hasParts = isSmall && inMemory && taps <= 32;
}

void WindowFactor::enter(Value group) {
  firstPlane = code.mul(group, planes);
  if (isSmall)
    firstPlane = code.narrow(firstPlane);
}

WindowFactor::Look WindowFactor::look(Value line, Value k) {
  if (isSmall) {
    line = code.narrow(line);
    k = code.narrow(k);
  }
  int64_t pixels = grid[0] * grid[1];
  bool isTaps = product.lanes == ConvolutionProduct::Taps;
  Value pixel = isTaps ? k : line, tap = isTaps ? line : k;
  Look look;
  std::tie(look.image, look.pixel) = code.split(pixel, pixels);
  std::tie(look.plane, look.tap) = code.split(tap, taps);
  return look;
}

WindowFactor::Seen WindowFactor::see(int d, Value pixel, Value tap) {
  int64_t stride = window.stride[d], dilation = window.dilation[d];
  if (product.lanes != ConvolutionProduct::InputPixels) {
    Value at = code.add(code.add(code.mul(pixel, stride), -window.before[d]),
                        code.mul(tap, dilation));
    return {at, code.below(at, seen[d])};
  }
  // pixel = at * stride - before + tap * dilation
  Value scaled =
      code.sub(code.add(pixel, window.before[d]), code.mul(tap, dilation));
  Value inside = code.below(scaled, seen[d] * stride);
  if (stride == 1)
    return {scaled, inside};
  scaled = code.select(inside, scaled, code.like(scaled, 0));
  Value at = code.div(scaled, stride);
  return {at, code.both(inside, code.equal(code.mul(at, stride), scaled))};
}

std::pair<WindowFactor::Seen, WindowFactor::Seen>
WindowFactor::see(const Look &look) {
  auto [y, x] = code.split(look.pixel, grid[1]);
  auto [tapY, tapX] = code.split(look.tap, window.kernel[1]);
  return {see(0, y, tapY), see(1, x, tapX)};
}

WindowFactor::PixelPart WindowFactor::pixelPart(Value image, Value pixel) {
  auto [y, x] = code.split(pixel, grid[1]);
  bool seesOutput = product.lanes == ConvolutionProduct::InputPixels;
  // The first tap sees the origin. Of an output, what a tap sees is a quotient,
  // if it has no rest: tap t sees origin - t * dilation / stride if rests are
  // equal.
  Value origin[2], bits[2];
  for (int d = 0; d < 2; ++d) {
    Value at = d == 0 ? y : x, rest;
    int64_t stride = window.stride[d];
    if (seesOutput)
      std::tie(origin[d], rest) =
          code.split(code.add(at, window.before[d]), stride);
    else
      origin[d] = code.add(code.mul(at, stride), -window.before[d]);
    Value none = code.like(at, 0);
    bits[d] = none;
    for (int64_t t = window.kernel[d]; t-- > 0;) {
      int64_t far = t * window.dilation[d];
      Value inside = code.below(
          code.add(origin[d], seesOutput ? -(far / stride) : far), seen[d]);
      if (seesOutput && stride > 1)
        inside =
            code.both(inside, code.equal(rest, code.like(rest, far % stride)));
      // Rows of taps: the second direction's bits for each of the first's.
      int64_t shift = d == 0 ? t * window.kernel[1] : t;
      Value bit = code.select(
          inside, code.like(at, static_cast<int32_t>(uint32_t(1) << shift)),
          none);
      bits[d] = code.b.createOrFold<arith::OrIOp>(code.loc, bits[d], bit);
    }
  }
  // A product without carries: a bit of the first for each row times the row.
  // It may use the sign's bit: no promise of no overflow.
  Value inside = code.b.createOrFold<arith::MulIOp>(code.loc, bits[0], bits[1]);
  SmallVector<AffineExpr> zeros(
      4, getAffineConstantExpr(0, operand.position.getContext()));
  auto first = cast<AffineConstantExpr>(operand.position.replaceDims(zeros));
  Value base = code.mul(image, operand.stride(0));
  base = code.add(base, first.getValue());
  base = code.add(base, code.mul(firstPlane, operand.stride(1)));
  base = code.add(base, code.mul(origin[0], operand.stride(2)));
  base = code.add(base, code.mul(origin[1], operand.stride(3)));
  return {base, inside};
}

WindowFactor::TapPart WindowFactor::tapPart(Value plane, Value tap) {
  auto [y, x] = code.split(tap, window.kernel[1]);
  bool seesOutput = product.lanes == ConvolutionProduct::InputPixels;
  Value offset = code.mul(plane, operand.stride(1));
  for (int d = 0; d < 2; ++d) {
    Value far = code.mul(d == 0 ? y : x, window.dilation[d]);
    int64_t stride = operand.stride(2 + d);
    if (seesOutput)
      offset =
          code.sub(offset, code.mul(code.div(far, window.stride[d]), stride));
    else
      offset = code.add(offset, code.mul(far, stride));
  }
  Value bit = arith::ShLIOp::create(code.b, code.loc, code.like(tap, 1), tap);
  return {offset, bit};
}

int64_t WindowFactor::tableBytes(int64_t depth) const {
  // Longer sums compute it again and again.
  constexpr int64_t most = 40 * 1024;
  bool isOfK = product.lanes != ConvolutionProduct::Taps;
  return hasParts && isOfK && depth * 8 <= most ? depth * 8 : 0;
}

void WindowFactor::fillTable(Value first, int64_t depth, int64_t threads) {
  if (tableBytes(depth) == 0)
    return;
  Type i32 = code.b.getI32Type();
  table = code.shared({depth * 2}, i32);
  tableFirst = first;
  code.loop(code.thread(), code.index(depth), threads, [&](Value i) {
    auto [plane, tap] = code.split(code.narrow(code.add(first, i)), taps);
    TapPart part = tapPart(plane, tap);
    Value both = vector::FromElementsOp::create(
        code.b, code.loc, VectorType::get({2}, i32),
        ValueRange{part.offset, part.bit});
    code.store(both, table, code.mul(i, 2));
  });
}

WindowFactor::TapPart WindowFactor::tapPart(Value k) {
  Value both = code.load(table, code.mul(code.sub(k, tableFirst), 2), 2);
  return {vector::ExtractOp::create(code.b, code.loc, both, int64_t(0)),
          vector::ExtractOp::create(code.b, code.loc, both, int64_t(1))};
}

GemmFactor::Spot WindowFactor::spot(Value line, Value k) {
  Look at = look(line, k);
  if (hasParts) {
    PixelPart pixel = pixelPart(at.image, at.pixel);
    TapPart tap = table ? tapPart(k) : tapPart(at.plane, at.tap);
    Value seen = code.both(pixel.inside, tap.bit);
    Value inside = arith::CmpIOp::create(
        code.b, code.loc, arith::CmpIPredicate::ne, seen, code.like(seen, 0));
    return {operand.memref, code.widenIndex(code.add(pixel.base, tap.offset)),
            inside};
  }
  auto [y, x] = see(at);
  // The constant is the position of indices that are all 0.
  SmallVector<AffineExpr> zeros(
      4, getAffineConstantExpr(0, operand.position.getContext()));
  auto first = cast<AffineConstantExpr>(operand.position.replaceDims(zeros));
  Value position = code.mul(at.image, operand.stride(0));
  position = code.add(position, first.getValue());
  position = code.add(
      position, code.mul(code.add(firstPlane, at.plane), operand.stride(1)));
  position = code.add(position, code.mul(y.at, operand.stride(2)));
  position = code.add(position, code.mul(x.at, operand.stride(3)));
  if (isSmall)
    position = code.widenIndex(position);
  return {operand.memref, position, code.both(y.inside, x.inside)};
}

Value WindowFactor::compute(Value line, Value k) {
  Look at = look(line, k);
  auto [y, x] = see(at);
  Value inside = code.both(y.inside, x.inside);
  // A place that exists is computed even for padding.
  auto existing = [&](Value value) {
    value = code.select(inside, value, code.like(value, 0));
    return isSmall ? code.widenIndex(value) : value;
  };
  auto wide = [&](Value value) {
    return isSmall ? code.widenIndex(value) : value;
  };
  Value index[] = {wide(at.image), wide(code.add(firstPlane, at.plane)),
                   existing(y.at), existing(x.at)};
  Value value = kernel.element(product.bNumber, dims, index, sizes);
  return code.select(inside, value, code.number(value.getType(), 0));
}
