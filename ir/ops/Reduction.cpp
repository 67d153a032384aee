//===- Reduction.cpp - combining along dimensions -------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Inference.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Generic.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Reduction.cpp.inc"

void TandemDialect::addReductionOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Reduction.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

#define TANDEM_REDUCTION(OP)                                                   \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *, std::optional<Location> loc, Adaptor adaptor,             \
      SmallVectorImpl<Type> &types) {                                          \
    return infer::inferReduced(loc, adaptor.getX().getType(),                  \
                               adaptor.getDims(), types);                      \
  }
TANDEM_REDUCTION(ReduceSumOp)
TANDEM_REDUCTION(ReduceMaxOp)
TANDEM_REDUCTION(ReduceMinOp)
#undef TANDEM_REDUCTION

//===----------------------------------------------------------------------===//
// Combiners
//===----------------------------------------------------------------------===//

static Type elementOf(Value v) {
  return cast<RankedTensorType>(v.getType()).getElementType();
}

/// The least (sign -1) or greatest (+1) value of a type.
static TypedAttr extreme(Type element, bool greatest) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type,
                          APFloat::getInf(type.getFloatSemantics(), !greatest));
  unsigned bits = element.getIntOrFloatBitWidth();
  return IntegerAttr::get(element, greatest ? APInt::getSignedMaxValue(bits)
                                            : APInt::getSignedMinValue(bits));
}

TypedAttr ReduceSumOp::getNeutral() {
  return cast<TypedAttr>(Builder(getContext()).getZeroAttr(elementOf(getX())));
}
Value ReduceSumOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::add(b, loc, x, y);
}
double ReduceSumOp::referenceCombine(double x, double y) { return x + y; }

TypedAttr ReduceMaxOp::getNeutral() {
  return extreme(elementOf(getX()), false);
}
Value ReduceMaxOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::maximum(b, loc, x, y);
}
double ReduceMaxOp::referenceCombine(double x, double y) {
  return std::isnan(x) || x > y ? x : y;
}

TypedAttr ReduceMinOp::getNeutral() { return extreme(elementOf(getX()), true); }
Value ReduceMinOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::minimum(b, loc, x, y);
}
double ReduceMinOp::referenceCombine(double x, double y) {
  return std::isnan(x) || x < y ? x : y;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult ReduceSumOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.dy().expandReduced(p.x().shape(), getDims()));
  return success();
}

/// dy / (number of winners), at the winners.
static LogicalResult pullbackToWinners(Pullback &p, ArrayRef<int64_t> dims) {
  if (!p.needs(0))
    return success();
  ArrayRef<int64_t> shape = p.x().shape();
  Expr wins =
      compare(ComparePredicate::eq, p.x(), p.y().expandReduced(shape, dims))
          .cast(p.x().type().getElementType());
  Expr each = p.dy() / wins.reduceSum(dims);
  p.set(0, wins * each.expandReduced(shape, dims));
  return success();
}
LogicalResult ReduceMaxOp::pullback(Pullback &p) {
  return pullbackToWinners(p, getDims());
}
LogicalResult ReduceMinOp::pullback(Pullback &p) {
  return pullbackToWinners(p, getDims());
}
