//===- ScatterParts.cpp - what take_grad and scatter have in common -------===//
#include "passes/lower/common/ScatterParts.h"
#include "passes/lower/common/Indices.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

ScatterParts ScatterParts::of(Operation *anchor) {
  ScatterParts parts;
  if (auto op = dyn_cast<TakeGradOp>(anchor)) {
    parts.table = op.getShape();
    parts.indexOperand = 1;
    parts.updateOperand = 0;
    parts.combine = Combine::add;
  } else {
    auto scatter = cast<ScatterOp>(anchor);
    parts.table = shapeOf(scatter.getTable());
    parts.tableOperand = 0;
    parts.indexOperand = 1;
    parts.updateOperand = 2;
    parts.combine = scatter.getCombine();
  }
  parts.indices = shapeOf(anchor->getOperand(parts.indexOperand));
  Type element = getElementTypeOrSelf(anchor->getResult(0).getType());
  parts.kept = scalar::computeType(element);
  parts.stored = parts.kept.isInteger(1)
                     ? Type(IntegerType::get(anchor->getContext(), 8))
                     : parts.kept;
  return parts;
}

Value ScatterParts::before(AnchorKernel &kernel, ArrayRef<AffineExpr> dims,
                           ArrayRef<Value> index) const {
  if (!tableOperand)
    return scalar::constant(kernel.code.b, kernel.code.loc, kept, 0.0);
  return kernel.element(*tableOperand, dims, index, table);
}

Value ScatterParts::combined(Code &code, Value x, Value update) const {
  switch (combine) {
  case Combine::set:
    return update;
  case Combine::add:
    return scalar::add(code.b, code.loc, x, update);
  case Combine::mul:
    return scalar::mul(code.b, code.loc, x, update);
  case Combine::min:
    return scalar::minimum(code.b, code.loc, x, update);
  case Combine::max:
    return scalar::maximum(code.b, code.loc, x, update);
  }
  return x;
}
