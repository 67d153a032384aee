//===- FusedAttention.cpp - attention without a tensor of scores ----------===//
//
// The forward keeps, of each row of scores, the logarithm of the sum of
// exponentials, from which the gradients compute the weights again. `delta`,
// the sum of dy * y, is what the softmax's gradient subtracts: the weighted sum
// of dy v^T over a row is the product of dy with the row's result.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ReadsViews.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Generic.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

FailureOr<AttentionSizes> AttentionSizes::get(Loc loc, Type q, Type k, Type v) {
  auto qShape = infer::shapeOf(loc, q), kShape = infer::shapeOf(loc, k),
       vShape = infer::shapeOf(loc, v);
  if (failed(qShape) || failed(kShape) || failed(vShape) ||
      failed(expectSameElements(loc, q, k)) ||
      failed(expectSameElements(loc, q, v)))
    return failure();
  size_t rank = qShape->size();
  if (rank < 2 || kShape->size() != rank || vShape->size() != rank ||
      qShape->drop_back(2) != kShape->drop_back(2) ||
      qShape->drop_back(2) != vShape->drop_back(2) ||
      qShape->back() != kShape->back() ||
      (*kShape)[rank - 2] != (*vShape)[rank - 2])
    return fail(loc, "expected 'q' [..., T, D], 'k' [..., S, D] and 'v' [..., "
                     "S, E] with equal leading dimensions, but got " +
                         text(*qShape) + ", " + text(*kShape) + " and " +
                         text(*vShape));
  SmallVector<int64_t> scores(*qShape);
  scores.back() = (*kShape)[rank - 2];
  if (!isTensorShape(scores))
    return fail(loc, "expected scores of at most 2^40 elements, but got " +
                         text(scores));
  return of(q, k, v);
}

AttentionSizes AttentionSizes::of(Type q, Type k, Type v) {
  Sizes qShape = tensorTypeOf(q).getShape(),
        kShape = tensorTypeOf(k).getShape();
  AttentionSizes sizes;
  sizes.leading.assign(qShape.begin(), qShape.end() - 2);
  sizes.batches = 1;
  for (int64_t size : sizes.leading)
    sizes.batches *= size;
  sizes.queries = qShape[qShape.size() - 2];
  sizes.keys = kShape[kShape.size() - 2];
  sizes.width = qShape.back();
  sizes.valueWidth = tensorTypeOf(v).getShape().back();
  return sizes;
}

SmallVector<int64_t> AttentionSizes::shape(Sizes last) const {
  SmallVector<int64_t> shape(leading);
  llvm::append_range(shape, last);
  return shape;
}

int64_t AttentionSizes::scores(bool causal) const {
  if (!causal)
    return batches * queries * keys;
  // A triangle, then whole rows.
  int64_t triangle = std::min(queries, keys);
  return batches *
         (triangle * (triangle + 1) / 2 + (queries - triangle) * keys);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Type computeTypeOf(Type tensor) {
  return scalar::computeType(tensorTypeOf(tensor).getElementType());
}

LogicalResult AttentionForwardOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                   Adaptor adaptor,
                                                   Types &types) {
  Type q = adaptor.getQ().getType();
  auto sizes = AttentionSizes::get(loc, q, adaptor.getK().getType(),
                                   adaptor.getV().getType());
  if (failed(sizes) ||
      failed(pushShape(
          loc, q, sizes->shape({sizes->queries, sizes->valueWidth}), types)))
    return failure();
  types.push_back(
      RankedTensorType::get(sizes->shape({sizes->queries}), computeTypeOf(q)));
  return success();
}

/// The sizes of a gradient, whose other operands are checked as well.
template <typename Adaptor>
static FailureOr<AttentionSizes> gradientSizes(Loc loc, Adaptor adaptor) {
  Type q = adaptor.getQ().getType(), dy = adaptor.getDy().getType();
  auto sizes = AttentionSizes::get(loc, q, adaptor.getK().getType(),
                                   adaptor.getV().getType());
  if (failed(sizes) || failed(expectSameElements(loc, q, dy)) ||
      failed(expectShape(loc, "dy", dy,
                         sizes->shape({sizes->queries, sizes->valueWidth}))))
    return failure();
  SmallVector<int64_t> rows = sizes->shape({sizes->queries});
  for (auto [name, value] :
       {std::pair<StringRef, Value>("lse", adaptor.getLse()),
        {"delta", adaptor.getDelta()}}) {
    if (failed(expectShape(loc, name, value.getType(), rows)))
      return failure();
    Type element = tensorTypeOf(value.getType()).getElementType();
    if (Type expected = computeTypeOf(q); element != expected) {
      std::string message;
      llvm::raw_string_ostream(message)
          << "expected '" << name << "' to have elements of '" << expected
          << "', but got '" << element << "'";
      return fail(loc, message);
    }
  }
  return sizes;
}

LogicalResult AttentionQueryGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                     Adaptor adaptor,
                                                     Types &types) {
  if (failed(gradientSizes(loc, adaptor)))
    return failure();
  types.push_back(adaptor.getQ().getType());
  return success();
}

LogicalResult AttentionKeyGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                   Adaptor adaptor,
                                                   Types &types) {
  if (failed(gradientSizes(loc, adaptor)))
    return failure();
  types.append({adaptor.getK().getType(), adaptor.getV().getType()});
  return success();
}

template <typename Op> static LogicalResult verifyScale(Op op) {
  return composite::verifyNumber(op, "scale", op.getScale().convertToDouble(),
                                 -kInfinity, kInfinity);
}
LogicalResult AttentionForwardOp::verify() { return verifyScale(*this); }
LogicalResult AttentionQueryGradOp::verify() { return verifyScale(*this); }
LogicalResult AttentionKeyGradOp::verify() { return verifyScale(*this); }

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// A multiply-add for each seen score and each of `columns`, and an
/// exponential; 2^62 if that is more.
template <typename Op> static int64_t flops(Op op, int64_t columns) {
  uint64_t scores = op.getSizes().scores(op.getCausal());
  return std::min(
      uint64_t(1) << 62,
      llvm::SaturatingMultiply(scores, 2 * static_cast<uint64_t>(columns) + 1));
}

int64_t AttentionForwardOp::getFlops() {
  AttentionSizes sizes = getSizes();
  return flops(*this, sizes.width + sizes.valueWidth);
}
int64_t AttentionQueryGradOp::getFlops() {
  AttentionSizes sizes = getSizes();
  return flops(*this, 2 * sizes.width + sizes.valueWidth);
}
int64_t AttentionKeyGradOp::getFlops() {
  AttentionSizes sizes = getSizes();
  return flops(*this, 2 * sizes.width + 2 * sizes.valueWidth);
}

// Rows are moved to where they are multiplied anyway.
bool tandem::readsViews(Operation *op) {
  return isa<AttentionForwardOp, AttentionQueryGradOp, AttentionKeyGradOp>(op);
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

unsigned AttentionForwardOp::numGradientResults() { return 1; }

LogicalResult AttentionForwardOp::pullback(Pullback &p) {
  if (!p.needs(0) && !p.needs(1) && !p.needs(2))
    return success();
  Expr dy = p.dy(), lse = p.out(1);
  Type compute = lse.type().getElementType();
  Expr delta =
      (dy.cast(compute) * p.y().cast(compute)).reduceSum({dy.rank() - 1});
  if (p.needs(0))
    p.set(0, p.expr(AttentionQueryGradOp::create(p.builder, p.loc, getQ(),
                                                 getK(), getV(), dy, lse, delta,
                                                 getCausal(), getScale())));
  if (!p.needs(1) && !p.needs(2))
    return success();
  auto grad =
      AttentionKeyGradOp::create(p.builder, p.loc, getQ(), getK(), getV(), dy,
                                 lse, delta, getCausal(), getScale());
  if (p.needs(1))
    p.set(1, p.expr(grad.getDk()));
  if (p.needs(2))
    p.set(2, p.expr(grad.getDv()));
  return success();
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// The scalar product of row `i` of `a` and row `j` of `b`, rows of one length.
static double dot(const reference::Array &a, int64_t i,
                  const reference::Array &b, int64_t j) {
  int64_t length = a.dim(a.rank() - 1);
  double sum = 0;
  for (int64_t d = 0; d < length; ++d)
    sum += a[i * length + d] * b[j * length + d];
  return sum;
}

/// Adds `factor` times row `j` of `b` to row `i` of `a`.
static void addRow(reference::Array &a, int64_t i, double factor,
                   const reference::Array &b, int64_t j) {
  int64_t length = a.dim(a.rank() - 1);
  for (int64_t d = 0; d < length; ++d)
    a[i * length + d] += factor * b[j * length + d];
}

/// Calls `body(row, firstKey, seen)` for each row of scores: the row of q and
/// of the result, the row of k and v of its first key, and how many it sees.
template <typename Op, typename Body> static void forEachRow(Op op, Body body) {
  AttentionSizes sizes = op.getSizes();
  for (int64_t batch = 0; batch < sizes.batches; ++batch)
    for (int64_t t = 0; t < sizes.queries; ++t)
      body(batch * sizes.queries + t, batch * sizes.keys,
           sizes.seen(t, op.getCausal()));
}

void AttentionForwardOp::evaluate(reference::Inputs in,
                                  reference::Outputs out) {
  const auto &q = *in[0], &k = *in[1], &v = *in[2];
  double scale = getScale().convertToDouble();
  forEachRow(*this, [&](int64_t row, int64_t first, int64_t seen) {
    double largest = -kInfinity, sum = 0;
    for (int64_t s = 0; s < seen; ++s)
      largest = std::fmax(largest, dot(q, row, k, first + s) * scale);
    for (int64_t s = 0; s < seen; ++s) {
      double weight = std::exp(dot(q, row, k, first + s) * scale - largest);
      sum += weight;
      addRow(out[0], row, weight, v, first + s);
    }
    int64_t length = out[0].dim(out[0].rank() - 1);
    for (int64_t e = 0; e < length; ++e)
      out[0][row * length + e] /= sum;
    out[1][row] = largest + std::log(sum);
  });
}

/// Calls `body(row, key, weight, ds)` for each score that is seen, by the
/// formulas of attention_query_grad.
template <typename Op, typename Body>
static void forEachScore(Op op, reference::Inputs in, Body body) {
  const auto &q = *in[0], &k = *in[1], &v = *in[2], &dy = *in[3], &lse = *in[4],
             &delta = *in[5];
  double scale = op.getScale().convertToDouble();
  forEachRow(op, [&](int64_t row, int64_t first, int64_t seen) {
    for (int64_t key = first; key < first + seen; ++key) {
      double weight = std::exp(dot(q, row, k, key) * scale - lse[row]);
      body(row, key, weight, weight * (dot(dy, row, v, key) - delta[row]));
    }
  });
}

void AttentionQueryGradOp::evaluate(reference::Inputs in,
                                    reference::Outputs out) {
  double scale = getScale().convertToDouble();
  forEachScore(*this, in, [&](int64_t row, int64_t key, double, double ds) {
    addRow(out[0], row, scale * ds, *in[1], key);
  });
}

void AttentionKeyGradOp::evaluate(reference::Inputs in,
                                  reference::Outputs out) {
  double scale = getScale().convertToDouble();
  forEachScore(*this, in,
               [&](int64_t row, int64_t key, double weight, double ds) {
                 addRow(out[0], key, scale * ds, *in[0], row);
                 addRow(out[1], key, weight, *in[3], row);
               });
}
