//===- AlongDims.cpp - reduce_mean, argmax and concat ---------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/reference/Generic.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

//===----------------------------------------------------------------------===//
// reduce_mean
//===----------------------------------------------------------------------===//

LogicalResult ReduceMeanOp::inferReturnTypes(MLIRContext *, Loc loc,
                                             Adaptor adaptor, Types &types) {
  return inferReduced(loc, adaptor.getX().getType(), adaptor.getDims(), types);
}

SmallVector<Value> ReduceMeanOp::decompose(OpBuilder &b) {
  Expr x = composite::in(b, getLoc(), getX(), composite::computeType(getX()));
  return {
      composite::reduceMean(x, getDims()).cast(getElementTypeOrSelf(getX()))};
}

void ReduceMeanOp::evaluate(reference::Inputs in, reference::Outputs out) {
  if (in[0]->size() == 0)
    return llvm::fill(out[0].data, std::nan(""));
  double share = static_cast<double>(out[0].size()) / in[0]->size();
  SmallVector<int64_t> kept;
  reference::forEachIndex(in[0]->shape, [&](ArrayRef<int64_t> index) {
    kept.clear();
    for (auto [d, i] : llvm::enumerate(index))
      if (!llvm::is_contained(getDims(), static_cast<int64_t>(d)))
        kept.push_back(i);
    out[0](kept) += (*in[0])(index)*share;
  });
}

//===----------------------------------------------------------------------===//
// argmax
//===----------------------------------------------------------------------===//

LogicalResult ArgmaxOp::inferReturnTypes(MLIRContext *context, Loc loc,
                                         Adaptor adaptor, Types &types) {
  int64_t dim = adaptor.getDim();
  auto shape = infer::shapeOf(loc, adaptor.getX().getType());
  if (failed(shape) || failed(expectDim(loc, "dim", dim, shape->size())))
    return failure();
  SmallVector<int64_t> kept(*shape);
  kept.erase(kept.begin() + dim);
  if ((*shape)[dim] == 0 && !llvm::is_contained(kept, 0))
    return fail(loc, "expected at least one element along dimension " +
                         Twine(dim) + ", but got " + text(*shape));
  return pushShape(loc,
                   RankedTensorType::get(*shape, IntegerType::get(context, 64)),
                   kept, types);
}

SmallVector<Value> ArgmaxOp::decompose(OpBuilder &b) {
  Expr x(b, getLoc(), getX());
  int64_t dim = getDim();
  Expr wins = compare(ComparePredicate::eq, x,
                      x.reduceMax(dim).expandReduced(x.shape(), dim));
  // Where there is a NaN the maximum is NaN and equals nothing.
  if (isDifferentiableType(x.type()))
    wins = logicalOr(wins, compare(ComparePredicate::ne, x, x));
  Expr index = composite::iota(x, b.getI64Type(), x.shape(), dim);
  Expr candidates =
      select(wins, index, index.like(static_cast<double>(x.dim(dim))));
  return {ReduceMinOp::create(b, getLoc(), candidates, dim)};
}

void ArgmaxOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &x = *in[0];
  int64_t line = 0;
  reference::forEachLine(
      x.shape, getDim(), [&](int64_t base, int64_t step, int64_t count) {
        int64_t best = 0;
        for (int64_t i = 1; i < count; ++i) {
          double value = x[base + i * step], other = x[base + best * step];
          if (value > other || (std::isnan(value) && !std::isnan(other)))
            best = i;
        }
        out[0][line++] = static_cast<double>(best);
      });
}

//===----------------------------------------------------------------------===//
// concat
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  if (adaptor.getParts().empty())
    return fail(loc, "expected at least one operand");
  Type first = adaptor.getParts().front().getType();
  auto firstShape = infer::shapeOf(loc, first);
  int64_t dim = adaptor.getDim();
  if (failed(firstShape) ||
      failed(expectDim(loc, "dim", dim, firstShape->size())))
    return failure();
  SmallVector<int64_t> shape(*firstShape);
  shape[dim] = 0;
  for (auto [i, part] : llvm::enumerate(adaptor.getParts())) {
    auto partShape = infer::shapeOf(loc, part.getType());
    if (failed(partShape) ||
        failed(expectSameElements(loc, first, part.getType())))
      return failure();
    SmallVector<int64_t> expected(*firstShape);
    if (partShape->size() == expected.size())
      expected[dim] = (*partShape)[dim];
    if (*partShape != ArrayRef(expected))
      return fail(loc, "expected operand #" + Twine(i) + " to have shape " +
                           text(*firstShape) + " but for dimension " +
                           Twine(dim) + ", but got " + text(*partShape));
    shape[dim] = std::min(shape[dim] + (*partShape)[dim], kMaxElements + 1);
  }
  return pushShape(loc, first, shape, types);
}

SmallVector<Value> ConcatOp::decompose(OpBuilder &b) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getY().getType()).getShape();
  int64_t dim = getDim(), offset = 0;
  SmallVector<int64_t> none(shape.size(), 0);
  Expr y;
  for (Value part : getParts()) {
    Expr x(b, getLoc(), part);
    SmallVector<int64_t> low(none), high(none);
    low[dim] = offset;
    high[dim] = shape[dim] - offset - x.dim(dim);
    Type element = x.type().getElementType();
    Expr padded =
        x.wrap(PadOp::create(b, getLoc(), part, low, high, none,
                             cast<TypedAttr>(b.getZeroAttr(element))));
    if (y) {
      Expr index = composite::iota(
          x, composite::indexType(getContext(), shape[dim]), shape, dim);
      Expr before = compare(ComparePredicate::lt, index, index.like(offset));
      padded = select(before, y, padded);
    }
    y = padded;
    offset += x.dim(dim);
  }
  return {y};
}

void ConcatOp::evaluate(reference::Inputs in, reference::Outputs out) {
  int64_t dim = getDim(), offset = 0;
  SmallVector<int64_t> target;
  for (const reference::Array *part : in) {
    reference::forEachIndex(part->shape, [&](ArrayRef<int64_t> index) {
      target.assign(index.begin(), index.end());
      target[dim] += offset;
      out[0](target) = (*part)(index);
    });
    offset += part->dim(dim);
  }
}
