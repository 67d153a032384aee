//===- Elementwise.cpp - what pointwise ops say beyond their records ------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Inference.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Generic.h"
#include "ir/reference/Integers.h"

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
                                          std::optional<Location> loc,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto shape = infer::shapeOf(loc, adaptor.getLhs().getType());
  if (failed(shape))
    return failure();
  return infer::pushShape(
      loc, RankedTensorType::get(*shape, IntegerType::get(context, 1)), *shape,
      types);
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
  return reference::convert(elementOf(getX()), elementOf(getY()), x[0]);
}

/// True if every number of type `from` is one of type `to`, both floats or both
/// integers.
static bool widens(Type from, Type to) {
  if (isa<IntegerType>(from) && isa<IntegerType>(to))
    return from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth() &&
           (isUnsignedType(from) || !isUnsignedType(to));
  auto narrow = dyn_cast<FloatType>(from), wide = dyn_cast<FloatType>(to);
  return narrow && wide && narrow.getWidth() < wide.getWidth();
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  if (auto inner = getX().getDefiningOp<CastOp>())
    if (widens(elementOf(inner.getX()), elementOf(inner.getY()))) {
      setOperand(inner.getX());
      return getResult();
    }
  // A rounding that is the same everywhere: to the nearest, ties to even.
  auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getX());
  auto to = dyn_cast<FloatType>(elementOf(getY()));
  if (!elements || !elements.isSplat() || !to)
    return {};
  APFloat number(to.getFloatSemantics());
  if (isa<FloatType>(elementOf(getX()))) {
    bool lost;
    number = elements.getSplatValue<APFloat>();
    if (number.isNaN())
      return {};
    number.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  } else {
    number.convertFromAPInt(elements.getSplatValue<APInt>(),
                            !isUnsignedType(elements.getElementType()),
                            APFloat::rmNearestTiesToEven);
  }
  return DenseElementsAttr::get(cast<ShapedType>(getType()), number);
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
         numberOf(elements.getElementType(), elements.getSplatValue<APInt>()) ==
             number;
}

static bool isFloatTensor(Value v) { return isa<FloatType>(elementOf(v)); }

OpFoldResult LogicalNotOp::fold(FoldAdaptor) {
  if (auto inner = getX().getDefiningOp<LogicalNotOp>())
    return inner.getX();
  return {};
}
OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return getLhs();
  auto condition = dyn_cast_or_null<DenseElementsAttr>(adaptor.getCondition());
  if (!condition || !condition.isSplat())
    return {};
  return condition.getSplatValue<bool>() ? getLhs() : getRhs();
}
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
OpFoldResult IdivOp::fold(FoldAdaptor) {
  return isSplat(getRhs(), 1.0) ? getLhs() : Value();
}

//===----------------------------------------------------------------------===//
// or_zero, if_defined
//===----------------------------------------------------------------------===//

/// A condition is a list of groups, each a list of names of cotangents.
static LogicalResult verifyCondition(Operation *op, StringRef name,
                                     ArrayAttr condition) {
  auto isGroup = [](Attribute group) {
    auto names = dyn_cast<ArrayAttr>(group);
    return names && !names.empty() &&
           llvm::all_of(names, llvm::IsaPred<StringAttr>);
  };
  if (llvm::all_of(condition, isGroup))
    return success();
  return op->emitOpError() << "expected '" << name
                           << "' to be a list of lists of cotangents, but got "
                           << condition;
}

LogicalResult OrZeroOp::verify() {
  return verifyCondition(*this, "needs", getNeeds());
}

LogicalResult IfDefinedOp::verify() {
  return verifyCondition(*this, "when", getWhen());
}
