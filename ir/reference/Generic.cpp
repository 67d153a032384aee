//===- Generic.cpp - evaluation that follows from an op's interfaces ------===//
#include "ir/reference/Generic.h"

#include "ir/Ops.h"
#include "ir/reference/Rounding.h"

#include "mlir/IR/AffineExpr.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

uint64_t reference::bitsOfInteger(double number) {
  double rest = std::fmod(number, 0x1p64);
  if (!(std::abs(rest) < 0x1p64))
    return 0;
  auto magnitude = static_cast<uint64_t>(std::abs(rest));
  return rest < 0 ? 0 - magnitude : magnitude;
}

/// The integer of `type` with these low bits.
static double integerOf(Type type, uint64_t bits) {
  APInt number(type.getIntOrFloatBitWidth(), bits, /*isSigned=*/false,
               /*implicitTrunc=*/true);
  return numberOf(type, number);
}

double reference::wrapped(Type type, double number) {
  if (!type.isInteger() || type.isInteger(1))
    return number;
  if (number >= 0 && number < std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1))
    return number;
  return integerOf(type, bitsOfInteger(number));
}

double reference::sum(Type type, double x, double y) {
  // A large operand may be one that was rounded to 2^63 or 2^64.
  double sum = x + y;
  return sum == x || sum == y ? sum : wrapped(type, sum);
}

double reference::product(Type type, double x, double y) {
  if (!type.isInteger())
    return x * y;
  // A double has not all digits.
  return integerOf(type, bitsOfInteger(x) * bitsOfInteger(y));
}

double reference::convert(Type from, Type to, double number) {
  if (to.isInteger(1))
    return number != 0;
  // What else is rounded is rounded where it is made (Rounding.h).
  if (auto type = dyn_cast<FloatType>(to))
    return isNarrowFloat(to) ? roundedTo(type, number) : number;
  if (from.isInteger())
    return wrapped(to, number);
  if (std::isnan(number))
    return 0;
  unsigned bits = to.getIntOrFloatBitWidth();
  bool none = isUnsignedType(to);
  double end = std::ldexp(1.0, none ? bits : bits - 1);
  double least = none ? 0.0 : -end;
  return std::clamp(std::trunc(number), least, bits == 64 ? end : end - 1);
}

void reference::evaluatePointwise(PointwiseOpInterface op, Inputs in,
                                  Outputs out) {
  SmallVector<double> x(in.size());
  auto element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool multiplies = isa<MulOp>(*op);
  // The others give numbers of the type.
  bool wraps = isa<AddOp, SubOp, NegOp, AbsOp>(*op);
  for (int64_t i = 0, n = out[0].size(); i < n; ++i) {
    for (auto [value, operand] : llvm::zip(x, in))
      value = (*operand)[i];
    double &y = out[0][i];
    y = multiplies ? product(element, x[0], x[1]) : op.referenceScalar(x);
    if (wraps && !llvm::is_contained(x, y))
      y = wrapped(element, y);
  }
}

/// Evaluates an affine expression without symbols.
static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), dims);
  int64_t rhs = evaluate(binary.getRHS(), dims);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return ((lhs % rhs) + rhs) % rhs;
  case AffineExprKind::FloorDiv:
    return lhs >= 0 ? lhs / rhs : -((-lhs + rhs - 1) / rhs);
  default:
    return lhs >= 0 ? (lhs + rhs - 1) / rhs : -(-lhs / rhs);
  }
}

static bool contains(IntegerSet set, ArrayRef<int64_t> index) {
  for (unsigned i = 0, n = set.getNumConstraints(); i < n; ++i) {
    int64_t value = evaluate(set.getConstraint(i), index);
    if (set.isEq(i) ? value != 0 : value < 0)
      return false;
  }
  return true;
}

static double toDouble(TypedAttr number) {
  if (auto value = dyn_cast<FloatAttr>(number))
    return value.getValueAsDouble();
  return numberOf(number.getType(), cast<IntegerAttr>(number).getValue());
}

void reference::evaluateView(ViewOpInterface op, Inputs in, Outputs out) {
  if (out[0].size() == 0)
    return;
  AffineMap map = op.getIndexMap();
  IntegerSet domain = op.getIndexDomain();
  double fill = op.getFill() ? toDouble(op.getFill()) : 0.0;
  SmallVector<int64_t> source(map.getNumResults());
  int64_t position = 0;
  forEachIndex(out[0].shape, [&](ArrayRef<int64_t> index) {
    double &element = out[0][position++];
    if (domain && !contains(domain, index)) {
      element = fill;
      return;
    }
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      source[i] = evaluate(expr, index);
    element = (*in[0])(source);
  });
}

void reference::evaluateReduction(ReductionOpInterface op, Inputs in,
                                  Outputs out) {
  ArrayRef<int64_t> reduced = op.getReducedDims();
  llvm::fill(out[0].data, toDouble(op.getNeutral()));
  auto element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool multiplies = isa<ReduceProdOp>(*op);
  SmallVector<int64_t> kept;
  int64_t position = 0;
  forEachIndex(in[0]->shape, [&](ArrayRef<int64_t> index) {
    kept.clear();
    for (auto [d, i] : llvm::enumerate(index))
      if (!llvm::is_contained(reduced, static_cast<int64_t>(d)))
        kept.push_back(i);
    double &sum = out[0](kept);
    double x = (*in[0])[position++];
    double y =
        multiplies ? product(element, sum, x) : op.referenceCombine(sum, x);
    sum = y == x || y == sum ? y : wrapped(element, y);
  });
}

APInt reference::bitsOf(Type element, double number) {
  if (auto type = dyn_cast<FloatType>(element)) {
    APFloat value(number);
    bool lost;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &lost);
    return value.bitcastToAPInt();
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits == 64 && number == (isUnsignedType(element) ? 0x1p64 : 0x1p63))
    return isUnsignedType(element) ? APInt::getMaxValue(64)
                                   : APInt::getSignedMaxValue(64);
  return APInt(bits, reference::bitsOfInteger(number),
               /*isSigned=*/false, /*implicitTrunc=*/true);
}

double reference::bitcastElement(Type from, Type to, double number) {
  if (from == to)
    return number;
  APInt bits = bitsOf(from, number);
  auto type = dyn_cast<FloatType>(to);
  if (!type)
    return numberOf(to, bits);
  APFloat value(type.getFloatSemantics(), bits);
  bool lost;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}
