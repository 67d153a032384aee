//===- ScalarFunctions.cpp - functions, quotients and bits of one element -===//
//
// Integer code that has a value for every operand: what arith leaves open
// (division by 0, shifts by too much) is decided here, without a branch.
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::scalar;

static bool isFloat(V x) { return isa<FloatType>(x.getType()); }
static V zero(B &b, L loc, V x) { return constant(b, loc, x.getType(), 0.0); }
static V one(B &b, L loc, V x) { return constant(b, loc, x.getType(), 1.0); }

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

V scalar::expm1(B &b, L loc, V x) { return math::ExpM1Op::create(b, loc, x); }
V scalar::tan(B &b, L loc, V x) { return math::TanOp::create(b, loc, x); }
V scalar::asin(B &b, L loc, V x) { return math::AsinOp::create(b, loc, x); }
V scalar::acos(B &b, L loc, V x) { return math::AcosOp::create(b, loc, x); }
V scalar::atan(B &b, L loc, V x) { return math::AtanOp::create(b, loc, x); }
V scalar::sinh(B &b, L loc, V x) { return math::SinhOp::create(b, loc, x); }
V scalar::cosh(B &b, L loc, V x) { return math::CoshOp::create(b, loc, x); }
V scalar::trunc(B &b, L loc, V x) { return math::TruncOp::create(b, loc, x); }
V scalar::atan2(B &b, L loc, V y, V x) {
  return math::Atan2Op::create(b, loc, y, x);
}

//===----------------------------------------------------------------------===//
// Quotients
//===----------------------------------------------------------------------===//

/// `y` where x / y is defined and fits, else 1.
static V safeDivisor(B &b, L loc, V y, V isEdge) {
  return select(b, loc, isEdge, one(b, loc, y), y);
}
/// An unsigned divisor is never -1.
static bool hasMinusOne(V y) { return !isUnsignedType(y.getType()); }
static V equals(B &b, L loc, V y, double number) {
  return compare(b, loc, ComparePredicate::eq, y,
                 constant(b, loc, y.getType(), number));
}

V scalar::div(B &b, L loc, V x, V y) {
  if (isFloat(x))
    return arith::DivFOp::create(b, loc, x, y);
  V isZero = equals(b, loc, y, 0), isEdge = isZero, isMinusOne;
  if (hasMinusOne(y)) {
    isMinusOne = equals(b, loc, y, -1);
    isEdge = arith::OrIOp::create(b, loc, isZero, isMinusOne);
  }
  V quotient = integers<arith::DivSIOp, arith::DivUIOp>(
      b, loc, x, safeDivisor(b, loc, y, isEdge));
  if (isMinusOne)
    quotient = select(b, loc, isMinusOne, neg(b, loc, x), quotient);
  return select(b, loc, isZero, zero(b, loc, x), quotient);
}

V scalar::rem(B &b, L loc, V x, V y) {
  if (isFloat(x))
    return arith::RemFOp::create(b, loc, x, y);
  V isZero = equals(b, loc, y, 0), isEdge = isZero;
  if (hasMinusOne(y))
    isEdge = arith::OrIOp::create(b, loc, isZero, equals(b, loc, y, -1));
  V rest = integers<arith::RemSIOp, arith::RemUIOp>(
      b, loc, x, safeDivisor(b, loc, y, isEdge));
  return select(b, loc, isZero, x, rest);
}

V scalar::pow(B &b, L loc, V x, V y) {
  if (isFloat(x))
    return math::PowFOp::create(b, loc, x, y);
  if (isUnsignedType(x.getType()))
    return integers<math::IPowIOp>(b, loc, x, y);
  V o = zero(b, loc, y), minus = constant(b, loc, x.getType(), -1.0);
  V isNegative = compare(b, loc, ComparePredicate::lt, y, o);
  V positive = select(b, loc, isNegative, o, y);
  V power = math::IPowIOp::create(b, loc, x, positive);
  // 1/x toward zero.
  V isOdd = compare(b, loc, ComparePredicate::ne,
                    bitAnd(b, loc, y, one(b, loc, y)), o);
  V ofMinus = select(b, loc, isOdd, minus, one(b, loc, x));
  V isMinus = compare(b, loc, ComparePredicate::eq, x, minus);
  V isOne = compare(b, loc, ComparePredicate::eq, x, one(b, loc, x));
  V inverse = select(b, loc, isMinus, ofMinus, zero(b, loc, x));
  inverse = select(b, loc, isOne, x, inverse);
  return select(b, loc, isNegative, inverse, power);
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

V scalar::bitAnd(B &b, L loc, V x, V y) {
  return integers<arith::AndIOp>(b, loc, x, y);
}
V scalar::bitOr(B &b, L loc, V x, V y) {
  return integers<arith::OrIOp>(b, loc, x, y);
}
V scalar::bitXor(B &b, L loc, V x, V y) {
  return integers<arith::XOrIOp>(b, loc, x, y);
}
V scalar::bitNot(B &b, L loc, V x) {
  V bits = signless(b, loc, x);
  auto ones = IntegerAttr::get(
      bits.getType(),
      APInt::getAllOnes(bits.getType().getIntOrFloatBitWidth()));
  bits = arith::XOrIOp::create(b, loc, bits,
                               arith::ConstantOp::create(b, loc, ones));
  return withSign(b, loc, bits, x.getType());
}

/// 0 <= count < bits
static V isInside(B &b, L loc, V count) {
  V bits = signless(b, loc, count);
  return arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ult, bits,
      constant(b, loc, bits.getType(), bits.getType().getIntOrFloatBitWidth()));
}

V scalar::shiftLeft(B &b, L loc, V x, V y) {
  V inside = isInside(b, loc, y), o = zero(b, loc, x);
  V count = select(b, loc, inside, y, zero(b, loc, y));
  return select(b, loc, inside, integers<arith::ShLIOp>(b, loc, x, count), o);
}

V scalar::shiftRight(B &b, L loc, V x, V y) {
  unsigned bits = y.getType().getIntOrFloatBitWidth();
  V inside = isInside(b, loc, y);
  V count = select(b, loc, inside, y, constant(b, loc, y.getType(), bits - 1));
  V shifted = integers<arith::ShRSIOp, arith::ShRUIOp>(b, loc, x, count);
  return isUnsignedType(x.getType())
             ? select(b, loc, inside, shifted, zero(b, loc, x))
             : shifted;
}
