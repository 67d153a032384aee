//===- Normalization.cpp - layer_norm and batch_norm ----------------------===//
//
// Both variances are the mean of squared deviations: the difference of two
// large numbers, E[x^2] - E[x]^2, loses what it is to measure.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/reference/Generic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// layer_norm
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, Loc loc,
                                            Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto shape = infer::shapeOf(loc, x);
  if (failed(shape) ||
      failed(expectDim(loc, "axis", adaptor.getAxis(), shape->size())))
    return failure();
  Sizes trailing = shape->drop_front(adaptor.getAxis());
  if (failed(
          expectShape(loc, "scale", adaptor.getScale().getType(), trailing)) ||
      failed(expectShape(loc, "bias", adaptor.getBias().getType(), trailing)))
    return failure();
  return pushShape(loc, x, *shape, types);
}

LogicalResult LayerNormOp::verify() {
  return composite::verifyNumber(*this, "epsilon",
                                 getEpsilon().convertToDouble(), 0, kInfinity);
}

SmallVector<Value> LayerNormOp::decompose(OpBuilder &b) {
  Type type = composite::computeType(getOperands());
  Expr x = composite::in(b, getLoc(), getX(), type);
  Expr scale = composite::in(b, getLoc(), getScale(), type);
  Expr bias = composite::in(b, getLoc(), getBias(), type);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(getAxis(), x.rank()));
  ArrayRef<int64_t> shape = x.shape();
  Expr deviation =
      x - composite::reduceMean(x, dims).expandReduced(shape, dims);
  Expr variance = composite::reduceMean(deviation * deviation, dims);
  Expr inverse = rsqrt(variance + getEpsilon().convertToDouble());
  Expr y = deviation * inverse.expandReduced(shape, dims) *
               scale.broadcastTo(shape, dims) +
           bias.broadcastTo(shape, dims);
  return {y.cast(getElementTypeOrSelf(getX()))};
}

void LayerNormOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &x = *in[0], &scale = *in[1], &bias = *in[2];
  int64_t n = scale.size();
  double epsilon = getEpsilon().convertToDouble();
  for (int64_t row = 0; row < x.size(); row += n) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i)
      mean += x[row + i] / n;
    for (int64_t i = 0; i < n; ++i)
      variance += std::pow(x[row + i] - mean, 2) / n;
    for (int64_t i = 0; i < n; ++i)
      out[0][row + i] =
          (x[row + i] - mean) / std::sqrt(variance + epsilon) * scale[i] +
          bias[i];
  }
}

//===----------------------------------------------------------------------===//
// batch_norm
//===----------------------------------------------------------------------===//

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *, Loc loc,
                                            Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto shape = infer::shapeOf(loc, x);
  if (failed(shape))
    return failure();
  if (shape->size() < 2)
    return fail(loc, "expected an input [N, C, ...], but got " + text(*shape));
  Sizes channels = shape->slice(1, 1);
  for (auto [name, value] :
       {std::pair<StringRef, Value>{"scale", adaptor.getScale()},
        {"bias", adaptor.getBias()},
        {"mean", adaptor.getMean()},
        {"variance", adaptor.getVariance()}})
    if (failed(expectShape(loc, name, value.getType(), channels)))
      return failure();
  types.append(
      {x, adaptor.getMean().getType(), adaptor.getVariance().getType()});
  return success();
}

LogicalResult BatchNormOp::verify() {
  return composite::verifyNumber(*this, "epsilon",
                                 getEpsilon().convertToDouble(), 0, kInfinity);
}

void BatchNormOp::setInference() { setTraining(false); }

SmallVector<Value> BatchNormOp::decompose(OpBuilder &b) {
  Type type = composite::computeType(getOperands());
  auto wide = [&](Value value) {
    return composite::in(b, getLoc(), value, type);
  };
  Expr x = wide(getX()), mean = wide(getMean()), variance = wide(getVariance());
  ArrayRef<int64_t> shape = x.shape();
  SmallVector<int64_t> reduced{0};
  for (int64_t d = 2; d < x.rank(); ++d)
    reduced.push_back(d);
  auto expand = [&](const Expr &channel) {
    return channel.expandReduced(shape, reduced);
  };
  if (getTraining())
    mean = composite::reduceMean(x, reduced);
  Expr deviation = x - expand(mean);
  if (getTraining())
    variance = composite::reduceMean(deviation * deviation, reduced);
  Expr inverse = rsqrt(variance + getEpsilon().convertToDouble());
  Expr y =
      deviation * expand(inverse * wide(getScale())) + expand(wide(getBias()));
  if (!getTraining())
    return {y.cast(getElementTypeOrSelf(getX())), getMean(), getVariance()};
  return {y.cast(getElementTypeOrSelf(getX())),
          mean.cast(getElementTypeOrSelf(getMean())),
          variance.cast(getElementTypeOrSelf(getVariance()))};
}

void BatchNormOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &x = *in[0];
  int64_t batch = x.dim(0), channels = x.dim(1);
  int64_t plane = 1;
  for (int64_t d = 2; d < x.rank(); ++d)
    plane *= x.dim(d);
  double count = static_cast<double>(batch * plane);
  double epsilon = getEpsilon().convertToDouble();
  for (int64_t c = 0; c < channels; ++c) {
    auto forEachElement = [&](auto body) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t i = 0; i < plane; ++i)
          body((n * channels + c) * plane + i);
    };
    double mean = (*in[3])[c], variance = (*in[4])[c];
    if (getTraining()) {
      mean = variance = 0;
      forEachElement([&](int64_t i) { mean += x[i] / count; });
      forEachElement(
          [&](int64_t i) { variance += std::pow(x[i] - mean, 2) / count; });
    }
    forEachElement([&](int64_t i) {
      out[0][i] = (x[i] - mean) / std::sqrt(variance + epsilon) * (*in[1])[c] +
                  (*in[2])[c];
    });
    out[1][c] = mean;
    out[2][c] = variance;
  }
}
