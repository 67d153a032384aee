//===- Product.cpp - linear and attention, made of matmul -----------------===//
#include "ir/EmptyTensors.h"
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
// linear
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType(), w = adaptor.getW().getType();
  auto xShape = infer::shapeOf(loc, x);
  if (failed(xShape) || failed(expectRank(loc, "w", w, 2)) ||
      failed(expectSameElements(loc, x, w)) ||
      failed(expectPrecision(loc, adaptor.getPrecision(), x)))
    return failure();
  Sizes wShape = cast<RankedTensorType>(w).getShape();
  if (xShape->empty() || xShape->back() != wShape[1])
    return fail(loc, "expected the last dimension of 'x' to be " +
                         Twine(wShape[1]) + " as 'w' " + text(wShape) +
                         " has, but got " + text(*xShape));
  if (Value bias = adaptor.getBias())
    if (failed(expectSameElements(loc, x, bias.getType())) ||
        failed(expectShape(loc, "bias", bias.getType(), wShape.take_front())))
      return failure();
  SmallVector<int64_t> shape(xShape->drop_back());
  shape.push_back(wShape[0]);
  return pushShape(loc, x, shape, types);
}

SmallVector<Value> LinearOp::decompose(OpBuilder &b) {
  Expr x(b, getLoc(), getX());
  int64_t columns = x.dim(x.rank() - 1);
  int64_t rows = 1;
  for (int64_t size : x.shape().drop_back())
    rows *= size;
  Expr flat = x.reshape({rows, columns});
  Expr y = x.wrap(MatmulOp::create(b, getLoc(), flat, getW(),
                                   /*transpose_lhs=*/false,
                                   /*transpose_rhs=*/true, getPrecisionAttr()));
  if (getBias())
    y = y + x.wrap(getBias()).broadcastTo(y.shape(), {1});
  return {y.reshape(getY().getType().getShape())};
}

void LinearOp::evaluate(reference::Inputs in, reference::Outputs out) {
  int64_t outputs = in[1]->dim(0), inputs = in[1]->dim(1);
  std::vector<double> w =
      reference::turned(in[1]->data.data(), outputs, inputs);
  for (int64_t row = 0; row < out[0].size(); row += outputs) {
    double *y = out[0].data.data() + row;
    if (in.size() > 2)
      llvm::copy(in[2]->data, y);
    const double *x = in[0]->data.data() + row / outputs * inputs;
    for (int64_t k = 0; k < inputs; ++k)
      for (int64_t o = 0; o < outputs; ++o)
        y[o] += x[k] * w[k * outputs + o];
  }
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, Loc loc,
                                            Adaptor adaptor, Types &types) {
  Type q = adaptor.getQ().getType();
  auto sizes = AttentionSizes::get(loc, q, adaptor.getK().getType(),
                                   adaptor.getV().getType());
  if (failed(sizes))
    return failure();
  return pushShape(loc, q, sizes->shape({sizes->queries, sizes->valueWidth}),
                   types);
}

LogicalResult AttentionOp::verify() {
  if (Value mask = getMask()) {
    auto sizes = AttentionSizes::of(getQ().getType(), getK().getType(),
                                    getV().getType());
    auto type = cast<RankedTensorType>(mask.getType());
    SmallVector<int64_t> expected = sizes.shape({sizes.queries, sizes.keys});
    if (type.getShape() != ArrayRef<int64_t>(expected) ||
        (!type.getElementType().isInteger(1) &&
         !isa<FloatType>(type.getElementType())))
      return emitOpError() << "expected a mask of floats or bools of the shape "
                           << text(expected) << ", but got " << type;
  }
  if (getScale())
    return composite::verifyNumber(
        *this, "scale", getScale()->convertToDouble(), -kInfinity, kInfinity);
  return success();
}

static double scaleOf(AttentionOp op) {
  if (auto scale = op.getScale())
    return scale->convertToDouble();
  return 1 /
         std::sqrt(static_cast<double>(op.getQ().getType().getShape().back()));
}

/// Of masked attention in f32 at least: masks may hide by numbers that narrow
/// types do not have.
static Expr scoresOf(AttentionOp op, OpBuilder &b) {
  Type type = composite::computeType(op.getQ());
  Expr q(b, op.getLoc(), op.getQ()), k(b, op.getLoc(), op.getK());
  StringAttr precision;
  if (op.getMask() && type != q.type().getElementType()) {
    // Numbers of 16 bits are numbers of tf32, too: their products are the same.
    precision = b.getStringAttr("tf32");
    q = q.cast(type);
    k = k.cast(type);
  }
  return q.wrap(MatmulOp::create(b, op.getLoc(), q.value, k.value,
                                 /*transpose_lhs=*/false,
                                 /*transpose_rhs=*/true, precision))
             .cast(type) *
         scaleOf(op);
}

SmallVector<Value> AttentionOp::decompose(OpBuilder &b) {
  Expr mask(b, getLoc(), getMask());
  Expr scores = composite::maskScores(scoresOf(*this, b), getCausal(), mask);
  Expr weights = mask ? composite::safeSoftmax(scores)
                      : composite::softmax(scores, scores.rank() - 1);
  return {MatmulOp::create(b, getLoc(),
                           weights.cast(getQ().getType().getElementType()),
                           getV(), /*transpose_lhs=*/false,
                           /*transpose_rhs=*/false,
                           /*precision=*/StringAttr())};
}

SmallVector<Value> AttentionOp::fuse(OpBuilder &b) {
  // Wider heads do not fit a kernel's registers.
  constexpr int64_t widest = 256;
  if (llvm::any_of(getOperandTypes(), isEmptyTensor) ||
      getQ().getType().getShape().back() > widest ||
      getV().getType().getShape().back() > widest)
    return {};
  MaskKind mask = getMask() ? kindOfMask(getMask()) : MaskKind::All;
  if (mask == MaskKind::Other)
    return {};
  return {AttentionForwardOp::create(b, getLoc(), getQ(), getK(), getV(),
                                     getCausal() || mask == MaskKind::Causal,
                                     llvm::APFloat(scaleOf(*this)))
              .getY()};
}

void AttentionOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &q = *in[0], &k = *in[1], &v = *in[2];
  int64_t T = q.dim(q.rank() - 2), D = q.dim(q.rank() - 1);
  int64_t S = k.dim(k.rank() - 2), E = v.dim(v.rank() - 1);
  double scale = scaleOf(*this);
  std::vector<double> weight(S);
  const reference::Array *mask = in.size() > 3 ? in[3] : nullptr;
  bool isBool = mask && getElementTypeOrSelf(getMask()).isInteger(1);
  for (int64_t batch = 0; batch < out[0].size() / (T * E); ++batch)
    for (int64_t t = 0; t < T; ++t) {
      int64_t seen = getCausal() ? std::min(S, t + 1) : S;
      double largest = -kInfinity, sum = 0;
      for (int64_t s = 0; s < seen; ++s) {
        weight[s] = 0;
        for (int64_t d = 0; d < D; ++d)
          weight[s] += q[(batch * T + t) * D + d] * k[(batch * S + s) * D + d];
        weight[s] *= scale;
        if (mask) {
          double more = mask->data[(batch * T + t) * S + s];
          weight[s] += isBool ? (more ? 0 : -kInfinity) : more;
        }
        largest = std::fmax(largest, weight[s]);
      }
      if (largest == -kInfinity && mask)
        continue;
      for (int64_t s = 0; s < seen; ++s)
        sum += weight[s] = std::exp(weight[s] - largest);
      for (int64_t s = 0; s < seen; ++s)
        for (int64_t e = 0; e < E; ++e)
          out[0][(batch * T + t) * E + e] +=
              weight[s] / sum * v[(batch * S + s) * E + e];
    }
}
