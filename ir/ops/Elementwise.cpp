//===- Elementwise.cpp - what pointwise ops say beyond their records ------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Generic.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Elementwise.cpp.inc"

void TandemDialect::addElementwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Elementwise.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// compare, select, cast
//===----------------------------------------------------------------------===//

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(adaptor.getLhs().getType());
  if (!type)
    return failure();
  types.push_back(type.clone(IntegerType::get(context, 1)));
  return success();
}

Value CompareOp::emitScalar(OpBuilder &b, Location loc, ValueRange x) {
  return scalar::compare(b, loc, getPredicate(), x[0], x[1]);
}

double CompareOp::referenceScalar(ArrayRef<double> x) {
  switch (getPredicate()) {
  case ComparePredicate::eq:
    return x[0] == x[1];
  case ComparePredicate::ne:
    return x[0] != x[1];
  case ComparePredicate::lt:
    return x[0] < x[1];
  case ComparePredicate::le:
    return x[0] <= x[1];
  case ComparePredicate::gt:
    return x[0] > x[1];
  case ComparePredicate::ge:
    return x[0] >= x[1];
  }
  return 0;
}

static Type elementOf(Value v) {
  return cast<RankedTensorType>(v.getType()).getElementType();
}

Value CastOp::emitScalar(OpBuilder &b, Location loc, ValueRange x) {
  return scalar::cast(b, loc, x[0], elementOf(getX()), elementOf(getY()));
}

double CastOp::referenceScalar(ArrayRef<double> x) {
  Type to = elementOf(getY());
  if (to.isInteger(1))
    return x[0] != 0;
  return isa<IntegerType>(to) ? std::trunc(x[0]) : x[0];
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
}

//===----------------------------------------------------------------------===//
// Folding: only what keeps every bit
//===----------------------------------------------------------------------===//

/// True if `v` is a constant with every element `number` (and its sign).
static bool isSplat(Value v, double number) {
  DenseElementsAttr elements;
  if (!matchPattern(v, m_Constant(&elements)) || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType())) {
    double value = elements.getSplatValue<APFloat>().convertToDouble();
    return value == number && std::signbit(value) == std::signbit(number);
  }
  return isa<IntegerType>(elements.getElementType()) &&
         elements.getSplatValue<APInt>().getSExtValue() == number;
}

static bool isFloatTensor(Value v) { return isa<FloatType>(elementOf(v)); }

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getX().getDefiningOp<NegOp>())
    return inner.getX();
  return {};
}
OpFoldResult AddOp::fold(FoldAdaptor) {
  // x + 0.0 turns -0.0 into 0.0; x + -0.0 is x.
  double zero = isFloatTensor(getLhs()) ? -0.0 : 0.0;
  if (isSplat(getRhs(), zero))
    return getLhs();
  return {};
}
OpFoldResult SubOp::fold(FoldAdaptor) {
  return isSplat(getRhs(), 0.0) ? getLhs() : Value();
}
OpFoldResult MulOp::fold(FoldAdaptor) {
  return isSplat(getRhs(), 1.0) ? getLhs() : Value();
}
OpFoldResult DivOp::fold(FoldAdaptor) {
  return isSplat(getRhs(), 1.0) ? getLhs() : Value();
}
