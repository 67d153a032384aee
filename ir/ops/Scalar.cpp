//===- Scalar.cpp - one element of each pointwise op ----------------------===//
#include "ir/ops/Scalar.h"
#include "ir/ops/NarrowFloat.h"
#include "ir/ops/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::scalar;

static bool isFloat(V x) { return isa<FloatType>(x.getType()); }
static bool isUnsigned(V x) { return isUnsignedType(x.getType()); }

Type scalar::computeType(Type element) {
  if (element.isF16() || element.isBF16() || isNarrowFloat(element))
    return Float32Type::get(element.getContext());
  return element;
}

/// The signless integer of as many bits; any other type as it is.
static Type signlessType(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? IntegerType::get(type.getContext(), integer.getWidth())
                 : type;
}

/// `x` as the same bits of `type`.
static V renamed(B &b, L loc, V x, Type type) {
  if (x.getType() == type)
    return x;
  if (auto inner = x.getDefiningOp<UnrealizedConversionCastOp>())
    if (inner.getInputs().size() == 1 && inner.getOperand(0).getType() == type)
      return inner.getOperand(0);
  return UnrealizedConversionCastOp::create(b, loc, type, x).getResult(0);
}

V scalar::signless(B &b, L loc, V x) {
  return renamed(b, loc, x, signlessType(x.getType()));
}
V scalar::withSign(B &b, L loc, V x, Type type) {
  return renamed(b, loc, x, type);
}
V scalar::toIndex(B &b, L loc, V x) {
  V bits = signless(b, loc, x);
  if (isUnsigned(x))
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), bits);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), bits);
}

V scalar::toBits(B &b, L loc, V x, Type element) {
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return signless(b, loc, x);
  if (isNarrowFloat(type))
    return toNarrowBits(b, loc, x, type);
  if (x.getType() != type)
    x = arith::TruncFOp::create(b, loc, type, x);
  return arith::BitcastOp::create(b, loc, b.getIntegerType(type.getWidth()), x);
}
V scalar::fromBits(B &b, L loc, V bits, Type element) {
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return withSign(b, loc, bits, element);
  if (isNarrowFloat(type))
    return fromNarrowBits(b, loc, bits, type);
  V x = arith::BitcastOp::create(b, loc, type, bits);
  Type compute = computeType(type);
  return compute == type ? x : arith::ExtFOp::create(b, loc, compute, x);
}

V scalar::constant(B &b, L loc, Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  bool isLarge = value >= 0x1p63; // only of ui64
  int64_t bits = static_cast<int64_t>(isLarge ? value - 0x1p63 : value);
  APInt number(type.getIntOrFloatBitWidth(), static_cast<uint64_t>(bits),
               /*isSigned=*/true, /*implicitTrunc=*/true);
  if (isLarge)
    number.setSignBit();
  return constant(b, loc, type, IntegerAttr::get(signlessType(type), number));
}

V scalar::constant(B &b, L loc, Type type, Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return constant(b, loc, type, number.getValueAsDouble());
  auto integer = cast<IntegerAttr>(value);
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt number = isUnsignedType(integer.getType())
                     ? integer.getValue().zextOrTrunc(bits)
                     : integer.getValue().sextOrTrunc(bits);
  if (type.isInteger(1))
    number = APInt(1, !integer.getValue().isZero());
  V made = arith::ConstantOp::create(
      b, loc, IntegerAttr::get(signlessType(type), number));
  return withSign(b, loc, made, type);
}

template <typename Op> static V unary(B &b, L loc, V x) {
  return Op::create(b, loc, x);
}
/// An op of two numbers; `UnsignedOp` of unsigned ones.
template <typename FloatOp, typename SignedOp, typename UnsignedOp = SignedOp>
static V binary(B &b, L loc, V x, V y) {
  if (isFloat(x))
    return FloatOp::create(b, loc, x, y);
  return integers<SignedOp, UnsignedOp>(b, loc, x, y);
}
static V zero(B &b, L loc, V x) { return constant(b, loc, x.getType(), 0.0); }
static V one(B &b, L loc, V x) { return constant(b, loc, x.getType(), 1.0); }

V scalar::neg(B &b, L loc, V x) {
  if (isFloat(x))
    return unary<arith::NegFOp>(b, loc, x);
  return integers<arith::SubIOp>(b, loc, zero(b, loc, x), x);
}
V scalar::abs(B &b, L loc, V x) {
  if (isFloat(x))
    return unary<math::AbsFOp>(b, loc, x);
  return isUnsigned(x) ? x : unary<math::AbsIOp>(b, loc, x);
}
V scalar::exp(B &b, L loc, V x) { return unary<math::ExpOp>(b, loc, x); }
V scalar::log(B &b, L loc, V x) { return unary<math::LogOp>(b, loc, x); }
V scalar::log1p(B &b, L loc, V x) { return unary<math::Log1pOp>(b, loc, x); }
V scalar::sqrt(B &b, L loc, V x) { return unary<math::SqrtOp>(b, loc, x); }
V scalar::rsqrt(B &b, L loc, V x) {
  return div(b, loc, one(b, loc, x), sqrt(b, loc, x));
}
V scalar::sin(B &b, L loc, V x) { return unary<math::SinOp>(b, loc, x); }
V scalar::cos(B &b, L loc, V x) { return unary<math::CosOp>(b, loc, x); }
V scalar::tanh(B &b, L loc, V x) { return unary<math::TanhOp>(b, loc, x); }
V scalar::erf(B &b, L loc, V x) { return unary<math::ErfOp>(b, loc, x); }
V scalar::floor(B &b, L loc, V x) { return unary<math::FloorOp>(b, loc, x); }
V scalar::ceil(B &b, L loc, V x) { return unary<math::CeilOp>(b, loc, x); }
V scalar::round(B &b, L loc, V x) {
  return unary<math::RoundEvenOp>(b, loc, x);
}
V scalar::sigmoid(B &b, L loc, V x) {
  V sum = add(b, loc, one(b, loc, x), exp(b, loc, neg(b, loc, x)));
  // The flag tells it from quotients of a model's own, which are exact.
  return arith::DivFOp::create(b, loc, one(b, loc, x), sum,
                               arith::FastMathFlags::arcp);
}
V scalar::relu(B &b, L loc, V x) { return maximum(b, loc, x, zero(b, loc, x)); }
V scalar::sign(B &b, L loc, V x) {
  V o = zero(b, loc, x);
  V positive = compare(b, loc, ComparePredicate::gt, x, o);
  V negative = compare(b, loc, ComparePredicate::lt, x, o);
  V minus = constant(b, loc, x.getType(), -1.0);
  // 0 and NaN pass through.
  V rest = select(b, loc, negative, minus, x);
  return select(b, loc, positive, one(b, loc, x), rest);
}
V scalar::logicalNot(B &b, L loc, V x) {
  return arith::XOrIOp::create(b, loc, x, one(b, loc, x));
}
V scalar::add(B &b, L loc, V x, V y) {
  return binary<arith::AddFOp, arith::AddIOp>(b, loc, x, y);
}
V scalar::sub(B &b, L loc, V x, V y) {
  return binary<arith::SubFOp, arith::SubIOp>(b, loc, x, y);
}
V scalar::mul(B &b, L loc, V x, V y) {
  return binary<arith::MulFOp, arith::MulIOp>(b, loc, x, y);
}
V scalar::maximum(B &b, L loc, V x, V y) {
  return binary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(b, loc, x,
                                                                   y);
}
V scalar::minimum(B &b, L loc, V x, V y) {
  return binary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(b, loc, x,
                                                                   y);
}
V scalar::logicalAnd(B &b, L loc, V x, V y) {
  return arith::AndIOp::create(b, loc, x, y);
}
V scalar::logicalOr(B &b, L loc, V x, V y) {
  return arith::OrIOp::create(b, loc, x, y);
}

V scalar::compare(B &b, L loc, ComparePredicate predicate, V x, V y) {
  using P = ComparePredicate;
  if (isFloat(x)) {
    auto p = predicate == P::eq   ? arith::CmpFPredicate::OEQ
             : predicate == P::ne ? arith::CmpFPredicate::UNE
             : predicate == P::lt ? arith::CmpFPredicate::OLT
             : predicate == P::le ? arith::CmpFPredicate::OLE
             : predicate == P::gt ? arith::CmpFPredicate::OGT
                                  : arith::CmpFPredicate::OGE;
    return arith::CmpFOp::create(b, loc, p, x, y);
  }
  bool none = isUnsigned(x);
  using I = arith::CmpIPredicate;
  auto p = predicate == P::eq   ? I::eq
           : predicate == P::ne ? I::ne
           : predicate == P::lt ? (none ? I::ult : I::slt)
           : predicate == P::le ? (none ? I::ule : I::sle)
           : predicate == P::gt ? (none ? I::ugt : I::sgt)
                                : (none ? I::uge : I::sge);
  return arith::CmpIOp::create(b, loc, p, signless(b, loc, x),
                               signless(b, loc, y));
}

V scalar::select(B &b, L loc, V condition, V x, V y) {
  V made = arith::SelectOp::create(b, loc, condition, signless(b, loc, x),
                                   signless(b, loc, y));
  return withSign(b, loc, made, x.getType());
}

/// `x` rounded to float type `to`, in its compute type; `x` is a float of its
/// own compute type.
static V castFloat(B &b, L loc, V x, FloatType to) {
  Type compute = computeType(to);
  unsigned bits = x.getType().getIntOrFloatBitWidth();
  if (isNarrowFloat(to))
    return fromNarrowBits(b, loc, toNarrowBits(b, loc, x, to), to);
  if (to == compute && bits == to.getWidth())
    return x;
  if (to == compute && bits < to.getWidth())
    return arith::ExtFOp::create(b, loc, to, x);
  V narrow = arith::TruncFOp::create(b, loc, to, x);
  return to == compute ? narrow
                       : arith::ExtFOp::create(b, loc, compute, narrow);
}

/// `bits`, an integer of 64 bits, as one of which a double has all digits: of
/// what is too large the last 12 are one, which says whether they are 0. It is
/// rounded to fewer digits as `bits` is.
static V withoutLastDigits(B &b, L loc, V bits, bool isUnsigned) {
  constexpr int64_t exact = int64_t(1) << 53, last = 0xfff;
  Type type = bits.getType();
  auto number = [&](int64_t n) {
    return constant(b, loc, type, b.getI64IntegerAttr(n));
  };
  V above = isUnsigned ? bits : add(b, loc, bits, number(exact));
  V isLarge = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, above,
                                    number(isUnsigned ? exact : 2 * exact));
  V rest = bitAnd(b, loc, bits, number(last));
  V isExact = compare(b, loc, ComparePredicate::eq, rest, number(0));
  V digit = select(b, loc, isExact, number(0), number((last + 1) / 2));
  V first = bitAnd(b, loc, bits, number(~last));
  return select(b, loc, isLarge, bitOr(b, loc, first, digit), bits);
}

/// The number of `to` nearest to the integer `x`, in its compute type.
static V castFromInteger(B &b, L loc, V x, FloatType to) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  V bits = signless(b, loc, x);
  Type type = computeType(to);
  // f32 would be the first to round these. Of other narrow types integers with
  // so many digits are beyond the largest number.
  if (to.isBF16() && width > 16)
    type = b.getF64Type();
  if (to.isBF16() && width == 64)
    bits = withoutLastDigits(b, loc, bits, isUnsigned(x));
  V wide = isUnsigned(x) ? V(arith::UIToFPOp::create(b, loc, type, bits))
                         : V(arith::SIToFPOp::create(b, loc, type, bits));
  return type == to ? wide : castFloat(b, loc, wide, to);
}

/// The integer `to` nearest to `x` toward zero; NaN is 0.
static V castToInteger(B &b, L loc, V x, Type to) {
  bool none = isUnsignedType(to);
  unsigned bits = to.getIntOrFloatBitWidth();
  Type signlessTo = signlessType(to);
  V end = constant(b, loc, x.getType(), std::ldexp(1.0, bits - !none));
  V least =
      constant(b, loc, x.getType(), none ? 0.0 : -std::ldexp(1.0, bits - 1));
  V isHigh = compare(b, loc, ComparePredicate::ge, x, end);
  V isInside = arith::AndIOp::create(
      b, loc, compare(b, loc, ComparePredicate::lt, x, end),
      compare(b, loc, ComparePredicate::ge, x, least));
  // What is out of range must not be converted: the result would be anything.
  V inside = select(b, loc, isInside, x, zero(b, loc, x));
  V made = none ? V(arith::FPToUIOp::create(b, loc, signlessTo, inside))
                : V(arith::FPToSIOp::create(b, loc, signlessTo, inside));
  auto number = [&](const APInt &value) -> V {
    return arith::ConstantOp::create(b, loc,
                                     IntegerAttr::get(signlessTo, value));
  };
  made = select(
      b, loc, isHigh,
      number(none ? APInt::getMaxValue(bits) : APInt::getSignedMaxValue(bits)),
      made);
  if (!none) {
    V isLow = compare(b, loc, ComparePredicate::lt, x, least);
    made = select(b, loc, isLow, number(APInt::getSignedMinValue(bits)), made);
  }
  return withSign(b, loc, made, to);
}

V scalar::cast(B &b, L loc, V x, Type from, Type to) {
  if (from == to)
    return x;
  if (auto toFloat = dyn_cast<FloatType>(to)) {
    if (isFloat(x))
      return castFloat(b, loc, x, toFloat);
    return castFromInteger(b, loc, x, toFloat);
  }
  if (to.isInteger(1))
    return compare(b, loc, ComparePredicate::ne, x, zero(b, loc, x));
  if (isFloat(x))
    return castToInteger(b, loc, x, to);
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = to.getIntOrFloatBitWidth();
  V bits = signless(b, loc, x);
  Type signlessTo = signlessType(to);
  if (fromBits > toBits)
    bits = arith::TruncIOp::create(b, loc, signlessTo, bits);
  else if (fromBits < toBits && isUnsigned(x))
    bits = arith::ExtUIOp::create(b, loc, signlessTo, bits);
  else if (fromBits < toBits)
    bits = arith::ExtSIOp::create(b, loc, signlessTo, bits);
  return withSign(b, loc, bits, to);
}

//===----------------------------------------------------------------------===//
// philox
//===----------------------------------------------------------------------===//

/// The low and the high word of an i64.
static std::array<V, 2> split(B &b, L loc, V x) {
  V high = arith::ShRUIOp::create(b, loc, x, constant(b, loc, x.getType(), 32));
  return {arith::TruncIOp::create(b, loc, b.getI32Type(), x),
          arith::TruncIOp::create(b, loc, b.getI32Type(), high)};
}

static V bits(B &b, L loc, uint32_t word) {
  return arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(static_cast<int32_t>(word)));
}

/// random::philox, as code.
static std::array<V, 4> block(B &b, L loc, std::array<V, 4> c,
                              std::array<V, 2> key) {
  auto times = [&](int i, V x) {
    auto product = arith::MulUIExtendedOp::create(
        b, loc, x, bits(b, loc, random::kMultipliers[i]));
    return std::array<V, 2>{product.getLow(), product.getHigh()};
  };
  auto mix = [&](V x, V y, V z) -> V {
    V both = arith::XOrIOp::create(b, loc, x, y);
    return arith::XOrIOp::create(b, loc, both, z);
  };
  for (int round = 0; round < random::kRounds; ++round) {
    auto [aLow, aHigh] = times(0, c[0]);
    auto [bLow, bHigh] = times(1, c[2]);
    c = {mix(bHigh, c[1], key[0]), bLow, mix(aHigh, c[3], key[1]), aLow};
    for (int i = 0; i < 2; ++i)
      key[i] =
          arith::AddIOp::create(b, loc, key[i], bits(b, loc, random::kWeyl[i]));
  }
  return c;
}

V scalar::philox(B &b, L loc, V seed, V offset, V position, V draw, Type to) {
  Type i64 = b.getI64Type(), compute = computeType(to);
  auto number = [&](int64_t n) -> V {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n));
  };
  auto isOdd = [&](V x) -> V {
    V bit = arith::AndIOp::create(b, loc, x, number(1));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                 number(0));
  };
  bool takesTwo = to.isF64();
  V half = arith::ShRUIOp::create(b, loc, position, number(1));
  V index = takesTwo ? half : arith::ShRUIOp::create(b, loc, half, number(1));
  auto [low, high] = split(b, loc, index);
  high = arith::AndIOp::create(b, loc, high, bits(b, loc, 0xFF));
  V top = arith::ShLIOp::create(
      b, loc, arith::TruncIOp::create(b, loc, b.getI32Type(), draw),
      bits(b, loc, 8));
  high = arith::OrIOp::create(b, loc, high, top);
  auto [offsetLow, offsetHigh] = split(b, loc, offset);
  auto w =
      block(b, loc, {low, high, offsetLow, offsetHigh}, split(b, loc, seed));
  V odd = isOdd(position);
  if (takesTwo) {
    V first = select(b, loc, odd, w[2], w[0]);
    V second = select(b, loc, odd, w[3], w[1]);
    V both = arith::OrIOp::create(
        b, loc,
        arith::ShLIOp::create(
            b, loc, arith::ExtUIOp::create(b, loc, i64, first), number(32)),
        arith::ExtUIOp::create(b, loc, i64, second));
    V digits = arith::ShRUIOp::create(b, loc, both, number(11));
    return mul(b, loc, arith::SIToFPOp::create(b, loc, to, digits),
               constant(b, loc, to, 0x1p-53));
  }
  V lower = select(b, loc, odd, w[1], w[0]);
  V upper = select(b, loc, odd, w[3], w[2]);
  V word = select(b, loc, isOdd(half), upper, lower);
  if (to.isInteger(32))
    return word;
  int digits = random::digitsOf(to);
  V leading = arith::ShRUIOp::create(b, loc, word, bits(b, loc, 32 - digits));
  return mul(b, loc, arith::SIToFPOp::create(b, loc, compute, leading),
             constant(b, loc, compute, std::ldexp(1.0, -digits)));
}
