//===- ConvolutionProduct.cpp - convolutions as implicit matrix products --===//
#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/common/Indices.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

Convolution2d lower::convolutionOf(Operation *op) {
  if (auto conv = dyn_cast<Conv2dOp>(op))
    return conv.getConvolution();
  if (auto conv = dyn_cast<Conv2dInputGradOp>(op))
    return conv.getConvolution();
  return cast<Conv2dFilterGradOp>(op).getConvolution();
}

ConvolutionProduct ConvolutionProduct::of(Operation *op) {
  ConvolutionProduct p{convolutionOf(op), {}, 0, 0, {}, {}, {},
                       OutputPixels,      1};
  const Convolution2d &c = p.conv;
  const Window2d &w = c.window;
  SmallVector<AffineExpr> d = dimensions(op->getContext(), Dims);
  int64_t channels = c.channelsPerGroup(), filters = c.filtersPerGroup();
  int64_t taps = w.kernel[0] * w.kernel[1];
  int64_t outputs = w.output[0] * w.output[1];
  // Two dimensions of a plane, or of the taps, from one.
  auto split = [](AffineExpr flat, int64_t length, auto... before) {
    return SmallVector<AffineExpr>{before..., flat.floorDiv(length),
                                   flat % length};
  };
  AffineExpr filter = d[Group] * filters + d[M];
  bool isForward = isa<Conv2dOp>(op);
  if (isForward || isa<Conv2dInputGradOp>(op)) {
    int64_t rows = isForward ? filters : channels;
    int64_t planes = isForward ? channels : filters;
    const auto &grid = isForward ? w.output : w.input;
    const auto &seen = isForward ? w.input : w.output;
    p.sizes = {c.batch, c.groups, rows, grid[0] * grid[1], planes, taps};
    AffineExpr plane = d[K0], tap = d[K1];
    if (taps == 1) { // one loop over k
      std::swap(p.sizes[K0], p.sizes[K1]);
      std::swap(plane, tap);
    }
    p.aNumber = 1;
    p.a = isForward ? split(tap, w.kernel[1], filter, plane)
                    : split(tap, w.kernel[1], d[Group] * filters + plane, d[M]);
    p.b = split(d[N], seen[1], d[Image], d[Group] * planes + plane);
    p.y = split(d[N], grid[1], d[Image], d[Group] * rows + d[M]);
    p.lanes = isForward ? OutputPixels : InputPixels;
    p.lineLength = grid[1];
  } else {
    p.sizes = {1, c.groups, filters, channels * taps, c.batch, outputs};
    p.aNumber = 1;
    p.a = split(d[K1], w.output[1], d[K0], filter);
    p.b = split(d[K1], w.input[1], d[K0], d[Group] * channels + d[N]);
    // In a form of which the position is found to be affine.
    p.y = {filter, d[N].floorDiv(taps),
           d[N].floorDiv(w.kernel[1]) % w.kernel[0], d[N] % w.kernel[1]};
    p.lanes = Taps;
    p.lineLength = w.kernel[1];
  }
  return p;
}

bool ConvolutionProduct::isPointwise() const {
  const Window2d &w = conv.window;
  return w.kernel == Window2d::Pair{1, 1} && w.stride == w.kernel &&
         w.input == w.output && w.before == Window2d::Pair{0, 0};
}

SmallVector<Value> ConvolutionProduct::index(Code &code, Value image,
                                             Value group, Value m, Value line,
                                             Value column) const {
  auto inGroup = [&](int64_t count) {
    return code.add(code.mul(group, count), m);
  };
  if (lanes == Taps) {
    int64_t height = conv.window.kernel[0];
    return {inGroup(conv.filtersPerGroup()), code.div(line, height),
            code.rem(line, height), column};
  }
  return {image,
          inGroup(lanes == OutputPixels ? conv.filtersPerGroup()
                                        : conv.channelsPerGroup()),
          line, column};
}
