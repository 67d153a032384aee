//===- Scalar.cpp - one element of each pointwise op ----------------------===//
#include "ir/ops/Scalar.h"
#include "ir/ops/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::scalar;

static bool isFloat(V x) { return isa<FloatType>(x.getType()); }

Type scalar::computeType(Type element) {
  if (element.isF16() || element.isBF16())
    return Float32Type::get(element.getContext());
  return element;
}

V scalar::constant(B &b, L loc, Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

V scalar::constant(B &b, L loc, Type type, Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return constant(b, loc, type, number.getValueAsDouble());
  auto integer = cast<IntegerAttr>(value);
  if (type.isInteger(1))
    return arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(type, !integer.getValue().isZero()));
  return arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(type, integer.getValue().getSExtValue()));
}

template <typename Op> static V unary(B &b, L loc, V x) {
  return Op::create(b, loc, x);
}
template <typename FloatOp, typename IntOp>
static V binary(B &b, L loc, V x, V y) {
  if (isFloat(x))
    return FloatOp::create(b, loc, x, y);
  return IntOp::create(b, loc, x, y);
}
static V zero(B &b, L loc, V x) { return constant(b, loc, x.getType(), 0.0); }
static V one(B &b, L loc, V x) { return constant(b, loc, x.getType(), 1.0); }

V scalar::neg(B &b, L loc, V x) {
  if (isFloat(x))
    return unary<arith::NegFOp>(b, loc, x);
  return arith::SubIOp::create(b, loc, zero(b, loc, x), x);
}
V scalar::abs(B &b, L loc, V x) {
  if (isFloat(x))
    return unary<math::AbsFOp>(b, loc, x);
  return math::AbsIOp::create(b, loc, x);
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
  V e = exp(b, loc, neg(b, loc, x));
  return div(b, loc, one(b, loc, x), add(b, loc, one(b, loc, x), e));
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
  return binary<arith::MaximumFOp, arith::MaxSIOp>(b, loc, x, y);
}
V scalar::minimum(B &b, L loc, V x, V y) {
  return binary<arith::MinimumFOp, arith::MinSIOp>(b, loc, x, y);
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
  bool isBool = x.getType().isInteger(1); // false < true: unsigned
  auto p =
      predicate == P::eq   ? arith::CmpIPredicate::eq
      : predicate == P::ne ? arith::CmpIPredicate::ne
      : predicate == P::lt
          ? (isBool ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt)
      : predicate == P::le
          ? (isBool ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle)
      : predicate == P::gt
          ? (isBool ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
          : (isBool ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge);
  return arith::CmpIOp::create(b, loc, p, x, y);
}

V scalar::select(B &b, L loc, V condition, V x, V y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

V scalar::cast(B &b, L loc, V x, Type from, Type to) {
  Type compute = computeType(to);
  if (from == to)
    return x;
  if (auto toFloat = dyn_cast<FloatType>(to)) {
    V wide = x;
    if (auto fromFloat = dyn_cast<FloatType>(x.getType())) {
      if (fromFloat.getWidth() < compute.getIntOrFloatBitWidth())
        wide = arith::ExtFOp::create(b, loc, compute, x);
      else if (fromFloat.getWidth() > compute.getIntOrFloatBitWidth() &&
               to == compute)
        wide = arith::TruncFOp::create(b, loc, compute, x);
    } else if (from.isInteger(1)) {
      wide = arith::UIToFPOp::create(b, loc, compute, x);
    } else {
      wide = arith::SIToFPOp::create(b, loc, compute, x);
    }
    if (to == compute)
      return wide;
    V narrow = arith::TruncFOp::create(b, loc, to, wide);
    return arith::ExtFOp::create(b, loc, compute, narrow);
  }
  if (to.isInteger(1))
    return compare(b, loc, ComparePredicate::ne, x, zero(b, loc, x));
  if (isFloat(x))
    return arith::FPToSIOp::create(b, loc, to, x);
  unsigned fromBits = x.getType().getIntOrFloatBitWidth();
  unsigned toBits = to.getIntOrFloatBitWidth();
  if (fromBits > toBits)
    return arith::TruncIOp::create(b, loc, to, x);
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, loc, to, x);
  return arith::ExtSIOp::create(b, loc, to, x);
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

V scalar::philox(B &b, L loc, V seed, V offset, V position, int64_t draw,
                 Type to) {
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
  high = arith::OrIOp::create(b, loc, high,
                              bits(b, loc, static_cast<uint32_t>(draw) << 8));
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
