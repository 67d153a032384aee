//===- Pooling.cpp - pooling over windows ---------------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

#define GET_OP_CLASSES
#include "ir/ops/Pooling.cpp.inc"

void TandemDialect::addPoolingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Pooling.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The windows over planes [N, C, H, W].
static FailureOr<Window2d> poolingWindow(Loc loc, Sizes planes, Sizes kernel,
                                         Sizes strides, Sizes padding,
                                         Sizes dilation) {
  if (planes.size() != 4 || !isTensorShape(planes) || planes[2] < 1 ||
      planes[3] < 1)
    return fail(loc,
                "expected an input [N, C, H, W] with H and W of at least 1 "
                "and at most 2^40 elements, but got " +
                    text(planes));
  auto window = Window2d::get(loc, planes.drop_front(2), kernel, strides,
                              padding, dilation);
  if (failed(window))
    return failure();
  for (int d = 0; d < 2; ++d) {
    int64_t half = ((kernel[d] - 1) * dilation[d] + 1) / 2;
    if (window->before[d] > half || window->after[d] > half)
      return fail(loc, "expected 'padding' of at most half of the dilated "
                       "kernel (" +
                           Twine(half) + ") along the " +
                           Twine(d ? "width" : "height") + ", but got " +
                           text(padding));
  }
  return *window;
}

static SmallVector<int64_t> pooledShape(Sizes planes, const Window2d &window) {
  return {planes[0], planes[1], window.output[0], window.output[1]};
}

LogicalResult MaxPool2dOp::inferReturnTypes(MLIRContext *context, Loc loc,
                                            Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto planes = infer::shapeOf(loc, x);
  if (failed(planes))
    return failure();
  auto window =
      poolingWindow(loc, *planes, adaptor.getKernel(), adaptor.getStrides(),
                    adaptor.getPadding(), adaptor.getDilation());
  if (failed(window))
    return failure();
  if (window->input[0] > std::numeric_limits<int32_t>::max() / window->input[1])
    return fail(loc, "expected planes of less than 2^31 elements, but got " +
                         text(*planes));
  SmallVector<int64_t> shape = pooledShape(*planes, *window);
  if (failed(pushShape(loc, x, shape, types)))
    return failure();
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 32)));
  return success();
}

/// dy, index and shape (or x and index) have the same planes.
static LogicalResult expectPlanes(Loc loc, Type values, Type index,
                                  Sizes planes, bool valuesMatchIndex) {
  auto shape = infer::shapeOf(loc, index);
  if (failed(shape) || failed(expectRank(loc, "index", index, 4)))
    return failure();
  if (valuesMatchIndex && failed(expectShape(loc, "dy", values, *shape)))
    return failure();
  if (planes.size() == 4 && planes.take_front(2) == shape->take_front(2))
    return success();
  return fail(loc, "expected planes [" + Twine((*shape)[0]) + ", " +
                       Twine((*shape)[1]) + ", H, W] as 'index' has, but got " +
                       text(planes));
}

LogicalResult MaxPool2dGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                Adaptor adaptor, Types &types) {
  Type dy = adaptor.getDy().getType();
  if (failed(expectPlanes(loc, dy, adaptor.getIndex().getType(),
                          adaptor.getShape(), true)))
    return failure();
  return pushShape(loc, dy, adaptor.getShape(), types);
}

LogicalResult MaxPool2dTakeOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto planes = infer::shapeOf(loc, x);
  if (failed(planes) ||
      failed(
          expectPlanes(loc, x, adaptor.getIndex().getType(), *planes, false)))
    return failure();
  auto index = infer::shapeOf(loc, adaptor.getIndex().getType());
  return pushShape(loc, x, *index, types);
}

LogicalResult AvgPool2dOp::inferReturnTypes(MLIRContext *, Loc loc,
                                            Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto planes = infer::shapeOf(loc, x);
  if (failed(planes))
    return failure();
  auto window =
      poolingWindow(loc, *planes, adaptor.getKernel(), adaptor.getStrides(),
                    adaptor.getPadding(), {1, 1});
  if (failed(window))
    return failure();
  return pushShape(loc, x, pooledShape(*planes, *window), types);
}

LogicalResult AvgPool2dGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                Adaptor adaptor, Types &types) {
  Type dy = adaptor.getDy().getType();
  auto window =
      poolingWindow(loc, adaptor.getShape(), adaptor.getKernel(),
                    adaptor.getStrides(), adaptor.getPadding(), {1, 1});
  if (failed(window) ||
      failed(
          expectShape(loc, "dy", dy, pooledShape(adaptor.getShape(), *window))))
    return failure();
  return pushShape(loc, dy, adaptor.getShape(), types);
}

//===----------------------------------------------------------------------===//
// Windows and cost
//===----------------------------------------------------------------------===//

Window2d MaxPool2dOp::getWindow() {
  return *poolingWindow(std::nullopt, getX().getType().getShape(), getKernel(),
                        getStrides(), getPadding(), getDilation());
}
Window2d AvgPool2dOp::getWindow() {
  return *poolingWindow(std::nullopt, getX().getType().getShape(), getKernel(),
                        getStrides(), getPadding(), {1, 1});
}
Window2d AvgPool2dGradOp::getWindow() {
  return *poolingWindow(std::nullopt, getShape(), getKernel(), getStrides(),
                        getPadding(), {1, 1});
}

static double divisor(const Window2d &window, bool countPadding, int64_t oh,
                      int64_t ow) {
  int64_t taps = 0;
  if (countPadding)
    taps = window.kernel[0] * window.kernel[1];
  else
    window.forEachTap(oh, ow, [&](int64_t, int64_t) { ++taps; });
  return static_cast<double>(taps);
}
double AvgPool2dOp::getDivisor(int64_t oh, int64_t ow) {
  return divisor(getWindow(), getCountIncludePad(), oh, ow);
}
double AvgPool2dGradOp::getDivisor(int64_t oh, int64_t ow) {
  return divisor(getWindow(), getCountIncludePad(), oh, ow);
}

/// One operation for each tap of each window.
static int64_t flops(Sizes planes, const Window2d &window) {
  uint64_t n = 1;
  for (int64_t size : {planes[0], planes[1], window.output[0], window.output[1],
                       window.kernel[0], window.kernel[1]})
    n = llvm::SaturatingMultiply(n, static_cast<uint64_t>(size));
  return std::min(n, uint64_t(1) << 62);
}
int64_t MaxPool2dOp::getFlops() {
  return flops(getX().getType().getShape(), getWindow());
}
int64_t AvgPool2dOp::getFlops() {
  return flops(getX().getType().getShape(), getWindow());
}
int64_t AvgPool2dGradOp::getFlops() { return flops(getShape(), getWindow()); }
int64_t MaxPool2dGradOp::getFlops() {
  return getDy().getType().getNumElements();
}
int64_t MaxPool2dTakeOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult MaxPool2dOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(MaxPool2dGradOp::create(p.builder, p.loc, p.dy(),
                                            getIndex(), p.x().shape())));
  return success();
}
LogicalResult MaxPool2dGradOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(MaxPool2dTakeOp::create(p.builder, p.loc, p.dy(),
                                            getIndex())));
  return success();
}
LogicalResult MaxPool2dTakeOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(MaxPool2dGradOp::create(p.builder, p.loc, p.dy(),
                                            getIndex(), p.x().shape())));
  return success();
}
LogicalResult AvgPool2dOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(AvgPool2dGradOp::create(
                 p.builder, p.loc, p.dy(), p.x().shape(), getKernel(),
                 getStrides(), getPadding(), getCountIncludePad())));
  return success();
}
LogicalResult AvgPool2dGradOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(AvgPool2dOp::create(p.builder, p.loc, p.dy(), getKernel(),
                                        getStrides(), getPadding(),
                                        getCountIncludePad())));
  return success();
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// Calls `body(plane, window, oh, ow)` for every window of every plane; the
/// first two are positions: of the plane's first element, and of the window.
template <typename Body>
static void forEachWindow(int64_t planes, const Window2d &window, Body body) {
  int64_t position = 0;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t oh = 0; oh < window.output[0]; ++oh)
      for (int64_t ow = 0; ow < window.output[1]; ++ow)
        body(plane * window.input[0] * window.input[1], position++, oh, ow);
}

void MaxPool2dOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &x = *in[0];
  Window2d window = getWindow();
  forEachWindow(x.dim(0) * x.dim(1), window,
                [&](int64_t plane, int64_t y, int64_t oh, int64_t ow) {
                  double best = -std::numeric_limits<double>::infinity();
                  int64_t where = -1;
                  window.forEachTap(oh, ow, [&](int64_t, int64_t pixel) {
                    double value = x[plane + pixel];
                    bool firstNaN = std::isnan(value) && !std::isnan(best);
                    if (where < 0 || value > best || firstNaN) {
                      best = value;
                      where = pixel;
                    }
                  });
                  out[0][y] = best;
                  out[1][y] = static_cast<double>(where);
                });
}

/// Calls `body(element, target)` for every index inside of its plane: the
/// position of the index, and of the element that it names.
template <typename Body>
static void forEachIndexed(const reference::Array &index, int64_t planeSize,
                           Body body) {
  int64_t perPlane = index.dim(2) * index.dim(3);
  for (int64_t i = 0; i < index.size(); ++i)
    if (index[i] >= 0 && index[i] < static_cast<double>(planeSize))
      body(i, i / perPlane * planeSize + static_cast<int64_t>(index[i]));
}

void MaxPool2dGradOp::evaluate(reference::Inputs in, reference::Outputs out) {
  forEachIndexed(
      *in[1], getShape()[2] * getShape()[3],
      [&](int64_t i, int64_t target) { out[0][target] += (*in[0])[i]; });
}
void MaxPool2dTakeOp::evaluate(reference::Inputs in, reference::Outputs out) {
  forEachIndexed(
      *in[1], in[0]->dim(2) * in[0]->dim(3),
      [&](int64_t i, int64_t target) { out[0][i] = (*in[0])[target]; });
}

void AvgPool2dOp::evaluate(reference::Inputs in, reference::Outputs out) {
  Window2d window = getWindow();
  forEachWindow(in[0]->dim(0) * in[0]->dim(1), window,
                [&](int64_t plane, int64_t y, int64_t oh, int64_t ow) {
                  double sum = 0;
                  window.forEachTap(oh, ow, [&](int64_t, int64_t pixel) {
                    sum += (*in[0])[plane + pixel];
                  });
                  out[0][y] = sum / getDivisor(oh, ow);
                });
}
void AvgPool2dGradOp::evaluate(reference::Inputs in, reference::Outputs out) {
  Window2d window = getWindow();
  forEachWindow(getShape()[0] * getShape()[1], window,
                [&](int64_t plane, int64_t y, int64_t oh, int64_t ow) {
                  double share = (*in[0])[y] / getDivisor(oh, ow);
                  window.forEachTap(oh, ow, [&](int64_t, int64_t pixel) {
                    out[0][plane + pixel] += share;
                  });
                });
}
