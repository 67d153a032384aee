//===- ClipGradients.cpp - gradients as an optimizer sees them ------------===//
//
// Partial sums are added by `accumulate`, for which a gradient that is
// undefined counts nothing. Under a mesh, those of gradients that are cut over
// the same axes come first: passes/shard then leaves their sum to be made by
// one all_reduce, whatever the number of parameters.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/ClipGradients.h"

#include "ir/Expr.h"
#include "ir/Ops.h"
#include "ir/ops/Composite.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

using namespace mlir;
using namespace tandem;

/// A tree, so that conditions of undefined gradients stay short and errors of
/// rounding grow with its height alone.
static Value createSum(OpBuilder &b, Location loc, SmallVector<Value> parts) {
  while (parts.size() > 1) {
    SmallVector<Value> sums;
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      sums.push_back(AccumulateOp::create(b, loc, parts[i], parts[i + 1]));
    if (parts.size() % 2)
      sums.push_back(parts.back());
    parts = std::move(sums);
  }
  return parts.front();
}

Value tandem::createNorm(OpBuilder &b, Location loc,
                         ArrayRef<UpdateGradient> gradients) {
  Type type = b.getF32Type();
  for (const UpdateGradient &gradient : gradients)
    if (getElementTypeOrSelf(gradient.value).isF64())
      type = b.getF64Type();
  // By the axes, whatever dimensions they cut.
  llvm::MapVector<Attribute, SmallVector<Value>> groups;
  for (const UpdateGradient &gradient : gradients) {
    Expr g = composite::in(b, loc, gradient.value, type);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, g.rank()));
    SmallVector<Attribute> axes;
    if (gradient.sharding)
      for (auto dim : gradient.sharding.getAsRange<ArrayAttr>())
        llvm::append_range(axes, dim);
    llvm::sort(axes, [](Attribute a, Attribute b) {
      return cast<StringAttr>(a).strref() < cast<StringAttr>(b).strref();
    });
    groups[b.getArrayAttr(axes)].push_back((g * g).reduceSum(dims));
  }
  SmallVector<Value> parts;
  for (auto &[axes, squares] : groups)
    parts.push_back(createSum(b, loc, std::move(squares)));
  return sqrt(Expr(b, loc, createSum(b, loc, std::move(parts))));
}

Value tandem::createIsFinite(OpBuilder &b, Location loc, Value norm) {
  Expr number(b, loc, norm);
  double most = number.type().getElementType().isF64()
                    ? std::numeric_limits<double>::max()
                    : double(std::numeric_limits<float>::max());
  return compare(ComparePredicate::le, number, number.like(most));
}

Value tandem::createClipped(OpBuilder &b, Location loc, const ClipSpec &spec,
                            Value gradient, Value norm) {
  Type element = getElementTypeOrSelf(gradient);
  Type type = composite::computeType(gradient);
  Expr g = composite::in(b, loc, gradient, type);
  if (spec.kind == ClipSpec::Kind::Value) {
    g = minimum(maximum(g, g.like(-spec.most)), g.like(spec.most));
  } else {
    Expr factor = spec.most / (Expr(b, loc, norm) + 1e-6);
    factor = minimum(factor, factor.like(1.0));
    g = g * factor.cast(type).broadcastTo(g.shape(), {});
  }
  return g.cast(element);
}

/// The elements of a row: of all dimensions but the first.
static int64_t elementsOfRow(ArrayRef<int64_t> shape) {
  int64_t count = shape.empty() ? 0 : 1;
  for (int64_t size : shape.drop_front(!shape.empty()))
    count *= size;
  return count;
}

// A row of one element is its mean: nothing would be left to learn from.
bool tandem::hasCenter(ArrayRef<int64_t> shape) {
  return elementsOfRow(shape) > 1;
}

Value tandem::createCentralized(OpBuilder &b, Location loc, Value gradient) {
  auto shape = cast<RankedTensorType>(gradient.getType()).getShape();
  auto dims = llvm::to_vector(
      llvm::seq<int64_t>(1, std::max<int64_t>(shape.size(), 1)));
  if (!hasCenter(shape))
    return gradient;
  Expr g = composite::in(b, loc, gradient, composite::computeType(gradient));
  Expr mean = g.reduceSum(dims) / static_cast<double>(elementsOfRow(shape));
  return (g - mean.expandReduced(shape, dims))
      .cast(getElementTypeOrSelf(gradient));
}
