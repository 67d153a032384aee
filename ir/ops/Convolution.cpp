//===- Convolution.cpp - conv2d and its gradients -------------------------===//
//
// The three ops are the partial derivatives of one trilinear form, the sum of
// x * w * dy over all taps: each is its derivative for the operand that it
// lacks. So every gradient of one is another of them.
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Convolution.h"
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Precision.h"
#include "ir/reference/Generic.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

FailureOr<Convolution2d> Convolution2d::get(Loc loc, Sizes x, Sizes w,
                                            Sizes strides, Sizes padding,
                                            Sizes dilation, int64_t groups) {
  if (x.size() != 4 || w.size() != 4)
    return fail(loc, "expected an input [N, C, H, W] and a filter [O, C / "
                     "groups, KH, KW], but got " +
                         text(x) + " and " + text(w));
  if (!isTensorShape(x) || !isTensorShape(w))
    return fail(loc, "expected sizes of at least 0 and at most 2^40 elements, "
                     "but got " +
                         text(x) + " and " + text(w));
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0)
    return fail(loc, "expected 'groups' to divide the channels (" +
                         Twine(x[1]) + ") and the filters (" + Twine(w[0]) +
                         "), but got " + Twine(groups));
  if (w[1] != x[1] / groups)
    return fail(loc, "expected filters over " + Twine(x[1] / groups) +
                         " channels (" + Twine(x[1]) + " in " + Twine(groups) +
                         " groups), but got " + Twine(w[1]));
  auto window = Window2d::get(loc, x.drop_front(2), w.drop_front(2), strides,
                              padding, dilation);
  if (failed(window))
    return failure();
  return Convolution2d{x[0], x[1], w[0], groups, *window};
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult Conv2dOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType(), w = adaptor.getW().getType();
  auto xShape = infer::shapeOf(loc, x), wShape = infer::shapeOf(loc, w);
  if (failed(xShape) || failed(wShape) ||
      failed(expectSameElements(loc, x, w)) ||
      failed(expectPrecision(loc, adaptor.getPrecision(), x)))
    return failure();
  auto conv = Convolution2d::get(loc, *xShape, *wShape, adaptor.getStrides(),
                                 adaptor.getPadding(), adaptor.getDilation(),
                                 adaptor.getGroups());
  if (failed(conv))
    return failure();
  return pushShape(loc, x, conv->outputShape(), types);
}

LogicalResult Conv2dInputGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                  Adaptor adaptor,
                                                  Types &types) {
  Type dy = adaptor.getDy().getType(), w = adaptor.getW().getType();
  auto wShape = infer::shapeOf(loc, w);
  if (failed(wShape) || failed(expectSameElements(loc, dy, w)) ||
      failed(expectPrecision(loc, adaptor.getPrecision(), dy)))
    return failure();
  auto conv = Convolution2d::get(loc, adaptor.getShape(), *wShape,
                                 adaptor.getStrides(), adaptor.getPadding(),
                                 adaptor.getDilation(), adaptor.getGroups());
  if (failed(conv) || failed(expectShape(loc, "dy", dy, conv->outputShape())))
    return failure();
  return pushShape(loc, dy, adaptor.getShape(), types);
}

/// The type of a tensor, or of a reference to one, of f32.
static Type ofF32(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  if (auto ref = dyn_cast<RefType>(type))
    return RefType::get(type.getContext(), ref.getShape(), f32);
  return cast<RankedTensorType>(type).clone(f32);
}

LogicalResult Conv2dFilterGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                   Adaptor adaptor,
                                                   Types &types) {
  Type x = adaptor.getX().getType(), dy = adaptor.getDy().getType();
  auto xShape = infer::shapeOf(loc, x);
  if (failed(xShape) || failed(expectSameElements(loc, x, dy)))
    return failure();
  std::optional<StringRef> precision = adaptor.getPrecision();
  if (precision &&
      !is_contained({"f32", "tf32", kSumsPrecision.data()}, *precision))
    return emitOptionalError(loc,
                             "expected 'precision' to be 'f32', 'tf32' or '",
                             kSumsPrecision, "' but got '", *precision, "'");
  if (precision == kSumsPrecision) {
    Type element = getElementTypeOrSelf(x);
    if (!element.isBF16() && !element.isF16())
      return emitOptionalError(loc, "'precision' of '", kSumsPrecision,
                               "' is of operands of 'f16' or 'bf16', but they "
                               "are of ",
                               element);
    x = ofF32(x);
  } else if (failed(expectPrecision(loc, precision, x))) {
    return failure();
  }
  auto conv = Convolution2d::get(loc, *xShape, adaptor.getShape(),
                                 adaptor.getStrides(), adaptor.getPadding(),
                                 adaptor.getDilation(), adaptor.getGroups());
  if (failed(conv) || failed(expectShape(loc, "dy", dy, conv->outputShape())))
    return failure();
  return pushShape(loc, x, adaptor.getShape(), types);
}

//===----------------------------------------------------------------------===//
// Geometry and cost
//===----------------------------------------------------------------------===//

template <typename Op> static Convolution2d geometry(Op op, Sizes x, Sizes w) {
  return *Convolution2d::get(std::nullopt, x, w, op.getStrides(),
                             op.getPadding(), op.getDilation(), op.getGroups());
}

Convolution2d Conv2dOp::getConvolution() {
  return geometry(*this, getX().getType().getShape(),
                  getW().getType().getShape());
}
Convolution2d Conv2dInputGradOp::getConvolution() {
  return geometry(*this, getShape(), getW().getType().getShape());
}
Convolution2d Conv2dFilterGradOp::getConvolution() {
  return geometry(*this, getX().getType().getShape(), getShape());
}

/// A multiply-add for each tap of each output element; 2^62 if that is more.
static int64_t flops(const Convolution2d &conv) {
  auto product = [](Sizes list) {
    uint64_t n = 1;
    for (int64_t i : list)
      n = llvm::SaturatingMultiply(n, static_cast<uint64_t>(i));
    return n;
  };
  uint64_t perOutput =
      product(conv.filterShape()) / std::max<int64_t>(conv.filters, 1);
  return std::min(
      uint64_t(1) << 62,
      llvm::SaturatingMultiply(2 * product(conv.outputShape()), perOutput));
}
int64_t Conv2dOp::getFlops() { return flops(getConvolution()); }
int64_t Conv2dInputGradOp::getFlops() { return flops(getConvolution()); }
int64_t Conv2dFilterGradOp::getFlops() { return flops(getConvolution()); }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// That of a product which gradients make of one with another.
static StringAttr keptPrecision(StringAttr precision) {
  bool isKept = precision && precision.getValue() != kSumsPrecision;
  return isKept ? precision : StringAttr();
}

template <typename Op>
static Expr forward(Pullback &p, Op op, Value x, Value w) {
  return p.expr(Conv2dOp::create(
      p.builder, p.loc, x, w, op.getStrides(), op.getPadding(),
      op.getDilation(), op.getGroups(), keptPrecision(op.getPrecisionAttr())));
}
template <typename Op>
static Expr inputGrad(Pullback &p, Op op, Value dy, Value w) {
  return p.expr(Conv2dInputGradOp::create(
      p.builder, p.loc, dy, w, op.getConvolution().inputShape(),
      op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups(),
      keptPrecision(op.getPrecisionAttr())));
}
template <typename Op>
static Expr filterGrad(Pullback &p, Op op, Value x, Value dy) {
  return p.expr(Conv2dFilterGradOp::create(
      p.builder, p.loc, x, dy, op.getConvolution().filterShape(),
      op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups(),
      keptPrecision(op.getPrecisionAttr())));
}

LogicalResult Conv2dOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, inputGrad(p, *this, p.dy(), getW()));
  if (p.needs(1))
    p.set(1, filterGrad(p, *this, getX(), p.dy()));
  return success();
}
LogicalResult Conv2dInputGradOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, forward(p, *this, p.dy(), getW()));
  if (p.needs(1))
    p.set(1, filterGrad(p, *this, p.dy(), getDy()));
  return success();
}
LogicalResult Conv2dFilterGradOp::pullback(Pullback &p) {
  Expr dy = p.dy().cast(getX().getType().getElementType());
  if (p.needs(0))
    p.set(0, inputGrad(p, *this, getDy(), dy));
  if (p.needs(1))
    p.set(1, forward(p, *this, getX(), dy));
  return success();
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// What one element of a filter meets along a row of results.
struct Run {
  int64_t x, step; ///< the first position in x, and how far the next one is
  int64_t w;
  int64_t y, count; ///< positions in y that follow each other
};

/// The results [first, last) whose tap lies inside the input in direction `d`.
static std::pair<int64_t, int64_t> resultsThatSee(const Window2d &window, int d,
                                                  int64_t tap) {
  int64_t first = 0, last = window.output[d];
  while (first < last && !window.inside(d, window.at(d, first, tap)))
    ++first;
  while (first < last && !window.inside(d, window.at(d, last - 1, tap)))
    --last;
  return {first, last};
}

/// Calls `body` with every run of the convolution. An element of y sees its
/// channels and taps in ascending order, one of w its images and results; with
/// `lastTapFirst` one of x sees its filters and results in ascending order. So
/// sums have one order however the loops are nested.
template <typename Body>
static void forEachRun(const Convolution2d &conv, bool lastTapFirst,
                       Body body) {
  const Window2d &window = conv.window;
  int64_t plane = window.input[0] * window.input[1];
  int64_t results = window.output[0] * window.output[1];
  int64_t taps = window.kernel[0] * window.kernel[1];
  int64_t perGroup = conv.channelsPerGroup();
  auto runTap = [&](int64_t tap, int64_t x, int64_t w, int64_t y) {
    int64_t kh = tap / window.kernel[1], kw = tap % window.kernel[1];
    auto [top, bottom] = resultsThatSee(window, 0, kh);
    auto [left, right] = resultsThatSee(window, 1, kw);
    for (int64_t oh = top; oh < bottom && left < right; ++oh)
      body(Run{x + window.at(0, oh, kh) * window.input[1] +
                   window.at(1, left, kw),
               window.stride[1], w + tap, y + oh * window.output[1] + left,
               right - left});
  };
  for (int64_t n = 0; n < conv.batch; ++n)
    for (int64_t o = 0; o < conv.filters; ++o)
      for (int64_t c = 0; c < perGroup; ++c)
        for (int64_t i = 0; i < taps; ++i)
          runTap(
              lastTapFirst ? taps - 1 - i : i,
              (n * conv.channels + o / conv.filtersPerGroup() * perGroup + c) *
                  plane,
              (o * perGroup + c) * taps, (n * conv.filters + o) * results);
}

void Conv2dOp::evaluate(reference::Inputs in, reference::Outputs out) {
  forEachRun(getConvolution(), false, [&](const Run &run) {
    double w = (*in[1])[run.w];
    for (int64_t i = 0; i < run.count; ++i)
      out[0][run.y + i] += (*in[0])[run.x + i * run.step] * w;
  });
}
void Conv2dInputGradOp::evaluate(reference::Inputs in, reference::Outputs out) {
  forEachRun(getConvolution(), true, [&](const Run &run) {
    double w = (*in[1])[run.w];
    for (int64_t i = 0; i < run.count; ++i)
      out[0][run.x + i * run.step] += (*in[0])[run.y + i] * w;
  });
}
void Conv2dFilterGradOp::evaluate(reference::Inputs in,
                                  reference::Outputs out) {
  forEachRun(getConvolution(), false, [&](const Run &run) {
    for (int64_t i = 0; i < run.count; ++i)
      out[0][run.w] += (*in[0])[run.x + i * run.step] * (*in[1])[run.y + i];
  });
}
