//===- Activation.cpp - gelu, silu and the softmaxes ----------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/reference/Generic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

/// sqrt(2 / pi) and the cubic coefficient of the tanh approximation (Hendrycks
/// and Gimpel, "Gaussian Error Linear Units", 2016).
static constexpr double kSqrt2OverPi = 0.79788456080286535588;
static constexpr double kCubic = 0.044715;
static constexpr double kSqrtHalf = 0.70710678118654752440;

/// The operand in the compute type, `formula` of it, rounded to the result.
template <typename Formula>
static SmallVector<Value> widened(OpBuilder &b, Operation *op,
                                  Formula formula) {
  Value x = op->getOperand(0);
  Expr wide = composite::in(b, op->getLoc(), x, composite::computeType(x));
  return {formula(wide).cast(getElementTypeOrSelf(x))};
}

//===----------------------------------------------------------------------===//
// gelu, silu
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::verify() {
  if (getApproximate() == "none" || getApproximate() == "tanh")
    return success();
  return emitOpError() << "expected 'approximate' to be 'none' or 'tanh', but "
                          "got '"
                       << getApproximate() << "'";
}

SmallVector<Value> GeluOp::decompose(OpBuilder &b) {
  return widened(b, *this, [&](const Expr &x) {
    // (1 + tanh(y)) / 2, without the cancellation where y is negative.
    if (getApproximate() == "tanh")
      return x * sigmoid(x * (2 * kSqrt2OverPi +
                              2 * kSqrt2OverPi * kCubic * (x * x)));
    return 0.5 * x * (1.0 + erf(x * kSqrtHalf));
  });
}

void GeluOp::evaluate(reference::Inputs in, reference::Outputs out) {
  bool approximate = getApproximate() == "tanh";
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    double x = (*in[0])[i];
    double twice = approximate
                       ? std::tanh(kSqrt2OverPi * (x + kCubic * std::pow(x, 3)))
                       : std::erf(x * kSqrtHalf);
    out[0][i] = x * (1 + twice) / 2;
  }
}

SmallVector<Value> SiluOp::decompose(OpBuilder &b) {
  return widened(b, *this, [](const Expr &x) { return x * sigmoid(x); });
}

void SiluOp::evaluate(reference::Inputs in, reference::Outputs out) {
  for (int64_t i = 0; i < in[0]->size(); ++i)
    out[0][i] = (*in[0])[i] / (1 + std::exp(-(*in[0])[i]));
}

//===----------------------------------------------------------------------===//
// softmax, log_softmax
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  return expectDim(getLoc(), "dim", getDim(), getX().getType().getRank());
}
LogicalResult LogSoftmaxOp::verify() {
  return expectDim(getLoc(), "dim", getDim(), getX().getType().getRank());
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &b) {
  return widened(
      b, *this, [&](const Expr &x) { return composite::softmax(x, getDim()); });
}

SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &b) {
  int64_t dim = getDim();
  return widened(b, *this, [&](const Expr &x) {
    Expr shifted = composite::shiftByMax(x, dim);
    return shifted -
           log(exp(shifted).reduceSum(dim)).expandReduced(x.shape(), dim);
  });
}

/// The largest of one line, and the sum of exp(x - largest).
static std::pair<double, double> largestAndSum(const reference::Array &x,
                                               int64_t base, int64_t step,
                                               int64_t count) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::fmax(largest, x[base + i * step]);
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(x[base + i * step] - largest);
  return {largest, sum};
}

void SoftmaxOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &x = *in[0];
  reference::forEachLine(
      x.shape, getDim(), [&](int64_t base, int64_t step, int64_t count) {
        auto [largest, sum] = largestAndSum(x, base, step, count);
        // As composite::shares, to the bit.
        double reciprocal = 1 / sum;
        for (int64_t i = base; i < base + count * step; i += step)
          out[0][i] = std::exp(x[i] - largest) * reciprocal;
      });
}

void LogSoftmaxOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &x = *in[0];
  reference::forEachLine(
      x.shape, getDim(), [&](int64_t base, int64_t step, int64_t count) {
        auto [largest, sum] = largestAndSum(x, base, step, count);
        for (int64_t i = base; i < base + count * step; i += step)
          out[0][i] = x[i] - largest - std::log(sum);
      });
}
