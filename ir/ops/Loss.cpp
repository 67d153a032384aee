//===- Loss.cpp - cross_entropy and mse_loss ------------------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/reference/Generic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// All dimensions of a tensor of `rank`.
static SmallVector<int64_t> allDims(int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

//===----------------------------------------------------------------------===//
// cross_entropy
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, Loc loc,
                                               Adaptor adaptor, Types &types) {
  Type logits = adaptor.getLogits().getType();
  auto shape = infer::shapeOf(loc, logits);
  if (failed(shape))
    return failure();
  if (shape->empty())
    return fail(loc, "expected logits of rank at least 1, but got rank 0");
  if (failed(expectShape(loc, "labels", adaptor.getLabels().getType(),
                         shape->drop_back())))
    return failure();
  Type label = getElementTypeOrSelf(adaptor.getLabels());
  int64_t classes = shape->back();
  if (!label.isInteger() || !holds(label, classes - 1))
    return emitOptionalError(loc, "expected labels of a type that holds ",
                             classes, " classes, but got ", label);
  if (auto ignored = adaptor.getIgnoreIndex())
    if (!holds(label, static_cast<int64_t>(*ignored)))
      return emitOptionalError(loc, "expected 'ignore_index' to be one that ",
                               label, " holds, but got ",
                               static_cast<int64_t>(*ignored));
  bool each = adaptor.getReduction() == "none";
  return pushShape(loc, logits, each ? shape->drop_back() : Sizes(), types);
}

LogicalResult CrossEntropyOp::verify() {
  return composite::verifyReduction(*this, getReduction());
}

// The label's logit is picked by comparing with iota: pointwise and a sum, so
// that the whole loss can be one kernel.
SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &b) {
  Type type = composite::computeType(getLogits());
  Expr logits = composite::in(b, getLoc(), getLogits(), type);
  Expr labels(b, getLoc(), getLabels());
  Type labelType = labels.type().getElementType();
  int64_t rows = labels.rank(), classes = logits.dim(rows);

  Expr shifted = composite::shiftByMax(logits, rows);
  Expr hit = compare(ComparePredicate::eq,
                     composite::iota(labels, labelType, logits.shape(), rows),
                     labels.expandReduced(logits.shape(), rows));
  Expr picked = select(hit, shifted, shifted.like(0.0)).reduceSum(rows);
  Expr loss = log(exp(shifted).reduceSum(rows)) - picked;

  Expr inside = compare(ComparePredicate::ge, labels, labels.like(0));
  if (holds(labelType, classes))
    inside = logicalAnd(
        inside, compare(ComparePredicate::lt, labels, labels.like(classes)));
  loss = select(inside, loss, loss.like(kNaN));
  Expr counted;
  if (auto ignored = getIgnoreIndex()) {
    counted = compare(ComparePredicate::ne, labels,
                      labels.like(static_cast<int64_t>(*ignored)));
    loss = select(counted, loss, loss.like(0.0));
  }
  if (getReduction() != "none") {
    SmallVector<int64_t> dims = allDims(rows);
    double all = static_cast<double>(labels.type().getNumElements());
    loss = loss.reduceSum(dims);
    if (getReduction() == "mean")
      loss = counted ? loss / counted.cast(type).reduceSum(dims) : loss / all;
  }
  return {loss.cast(getElementTypeOrSelf(getLogits()))};
}

void CrossEntropyOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &logits = *in[0], &labels = *in[1];
  int64_t classes = logits.shape.back();
  double total = 0, counted = 0;
  for (int64_t row = 0; row < labels.size(); ++row) {
    double label = labels[row], loss = 0;
    bool ignored =
        getIgnoreIndex() && label == static_cast<int64_t>(*getIgnoreIndex());
    if (!ignored && (label < 0 || label >= static_cast<double>(classes))) {
      loss = kNaN;
    } else if (!ignored) {
      const double *x = &logits.data[row * classes];
      double largest = x[0], sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        largest = std::fmax(largest, x[c]);
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(x[c] - largest);
      loss = largest + std::log(sum) - x[static_cast<int64_t>(label)];
    }
    counted += !ignored;
    total += loss;
    if (getReduction() == "none")
      out[0][row] = loss;
  }
  if (getReduction() != "none")
    out[0][0] = getReduction() == "mean" ? total / counted : total;
}

//===----------------------------------------------------------------------===//
// mse_loss
//===----------------------------------------------------------------------===//

LogicalResult MseLossOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType(), target = adaptor.getTarget().getType();
  auto shape = infer::shapeOf(loc, x);
  if (failed(shape) || failed(expectSameElements(loc, x, target)) ||
      failed(expectShape(loc, "target", target, *shape)))
    return failure();
  return pushShape(loc, x, adaptor.getReduction() == "none" ? *shape : Sizes(),
                   types);
}

LogicalResult MseLossOp::verify() {
  return composite::verifyReduction(*this, getReduction());
}

SmallVector<Value> MseLossOp::decompose(OpBuilder &b) {
  Type type = composite::computeType(getX());
  Expr difference = composite::in(b, getLoc(), getX(), type) -
                    composite::in(b, getLoc(), getTarget(), type);
  Expr loss = difference * difference;
  if (getReduction() == "mean")
    loss = composite::reduceMean(loss, allDims(loss.rank()));
  else if (getReduction() == "sum")
    loss = loss.reduceSum(allDims(loss.rank()));
  return {loss.cast(getElementTypeOrSelf(getX()))};
}

void MseLossOp::evaluate(reference::Inputs in, reference::Outputs out) {
  double total = 0;
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    double square = std::pow((*in[0])[i] - (*in[1])[i], 2);
    total += square;
    if (getReduction() == "none")
      out[0][i] = square;
  }
  if (getReduction() != "none")
    out[0][0] = getReduction() == "mean"
                    ? total / static_cast<double>(in[0]->size())
                    : total;
}
