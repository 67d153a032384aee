//===- GemmWindow.cpp - what windows see, as a factor of a product --------===//
#include "passes/lower/cuda/GemmWindow.h"

#include "ir/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

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
  for (unsigned d = 0; d < 4; ++d)
    dims.push_back(getAffineDimExpr(d, kernel.anchor->getContext()));
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
  look.plane = code.add(firstPlane, look.plane);
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

GemmFactor::Spot WindowFactor::spot(Value line, Value k) {
  Look at = look(line, k);
  auto [y, x] = see(at);
  // The constant is the position of indices that are all 0.
  SmallVector<AffineExpr> zeros(
      4, getAffineConstantExpr(0, operand.position.getContext()));
  auto first = cast<AffineConstantExpr>(operand.position.replaceDims(zeros));
  Value position = code.mul(at.image, operand.stride(0));
  position = code.add(position, first.getValue());
  position = code.add(position, code.mul(at.plane, operand.stride(1)));
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
  Value index[] = {wide(at.image), wide(at.plane), existing(y.at),
                   existing(x.at)};
  Value value = kernel.element(product.bNumber, dims, index, sizes);
  return code.select(inside, value, code.number(value.getType(), 0));
}
