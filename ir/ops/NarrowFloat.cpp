//===- NarrowFloat.cpp - floats of 8 bits as numbers, in arith ------------===//
#include "ir/ops/NarrowFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

namespace {

/// Makes ops of one location.
struct Code {
  OpBuilder &b;
  Location loc;

  Value number(Type type, uint64_t bits) {
    APInt value(type.getIntOrFloatBitWidth(), bits);
    return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, value));
  }
  Value number(FloatType type, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  Value shifted(Value x, unsigned by) {
    return arith::ShLIOp::create(b, loc, x, number(x.getType(), by));
  }
  Value shiftedDown(Value x, unsigned by) {
    return arith::ShRUIOp::create(b, loc, x, number(x.getType(), by));
  }
  Value masked(Value x, uint64_t mask) {
    return arith::AndIOp::create(b, loc, x, number(x.getType(), mask));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, uint64_t y) {
    return arith::CmpIOp::create(b, loc, predicate, x, number(x.getType(), y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value bits(Value x, Type type) {
    return arith::BitcastOp::create(b, loc, type, x);
  }
};

} // namespace

static bool hasInfinity(FloatType type) { return isa<Float8E5M2Type>(type); }

Value scalar::fromNarrowBits(OpBuilder &b, Location loc, Value bits,
                             FloatType from) {
  Code code{b, loc};
  Type i16 = b.getI16Type(), f32 = b.getF32Type();
  Value wide = arith::ExtUIOp::create(b, loc, i16, bits);
  // The exponent of f16 has 5 bits as that of f8E5M2, whose bits are the upper
  // half of one.
  if (hasInfinity(from))
    return arith::ExtFOp::create(
        b, loc, f32, code.bits(code.shifted(wide, 8), b.getF16Type()));
  // With 4 bits it is 8 less than that of an f16 with the same digits.
  Value sign = code.shifted(code.masked(wide, 0x80), 8);
  Value digits = code.shifted(code.masked(wide, 0x7f), 7);
  Value half =
      code.bits(arith::OrIOp::create(b, loc, sign, digits), b.getF16Type());
  Value number =
      arith::MulFOp::create(b, loc, arith::ExtFOp::create(b, loc, f32, half),
                            code.number(b.getF32Type(), 256.0));
  Value isNaN =
      code.compare(arith::CmpIPredicate::eq, code.masked(bits, 0x7f), 0x7f);
  return code.select(isNaN, code.number(b.getF32Type(), std::nan("")), number);
}

Value scalar::toNarrowBits(OpBuilder &b, Location loc, Value x, FloatType to) {
  Code code{b, loc};
  auto from = cast<FloatType>(x.getType());
  unsigned width = from.getWidth(), digits = from.getFPMantissaWidth() - 1;
  unsigned kept = to.getFPMantissaWidth() - 1, dropped = digits - kept;
  int bias = (1 << (width - digits - 2)) - 1;
  int narrowBias = (1 << (7 - kept - 1)) - 1;
  Type integer = b.getIntegerType(width);
  uint64_t signBit = uint64_t(1) << (width - 1);

  Value all = code.bits(x, integer);
  Value magnitude = code.masked(all, signBit - 1);
  // Normal numbers: half of the last digit is added, less one where that is
  // even; then the exponent's bias is changed.
  Value odd = code.masked(code.shiftedDown(magnitude, dropped), 1);
  Value half = arith::AddIOp::create(
      b, loc, odd, code.number(integer, (uint64_t(1) << (dropped - 1)) - 1));
  Value normal =
      code.shiftedDown(arith::AddIOp::create(b, loc, magnitude, half), dropped);
  normal = arith::SubIOp::create(
      b, loc, normal,
      code.number(integer, uint64_t(bias - narrowBias) << kept));
  // Others: added to a number whose last digit is the least that `to` has.
  Value least = code.number(from, std::ldexp(1.0, static_cast<int>(digits) + 1 -
                                                      narrowBias -
                                                      static_cast<int>(kept)));
  Value sum = arith::AddFOp::create(b, loc, code.bits(magnitude, from), least);
  Value small = arith::SubIOp::create(b, loc, code.bits(sum, integer),
                                      code.bits(least, integer));
  uint64_t firstNormal = uint64_t(bias - narrowBias + 1) << digits;
  Value result = code.select(
      code.compare(arith::CmpIPredicate::ult, magnitude, firstNormal), small,
      normal);
  // What is too large, and NaN.
  uint64_t end = hasInfinity(to) ? 0x7c : 0x7f;
  uint64_t infinity = ((uint64_t(1) << (width - 1 - digits)) - 1) << digits;
  result = code.select(code.compare(arith::CmpIPredicate::ugt, result, end),
                       code.number(integer, end), result);
  result =
      code.select(code.compare(arith::CmpIPredicate::ugt, magnitude, infinity),
                  code.number(integer, 0x7f), result);
  Value sign = code.shiftedDown(code.masked(all, signBit), width - 8);
  result = arith::OrIOp::create(b, loc, result, sign);
  return arith::TruncIOp::create(b, loc, b.getI8Type(), result);
}
