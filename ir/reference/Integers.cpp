//===- Integers.cpp - what depends on the type of the numbers -------------===//
#include "ir/reference/Integers.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/APInt.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

static bool isFloat(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}
static bool isUnsigned(Type element) {
  return element.isInteger(1) || element.isUnsignedInteger();
}

/// A number that the type holds, as its bits.
static APInt bitsOf(Type type, double x) {
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  // Twice the bits of the largest type: no number is out of range.
  bool isLarge = x >= 0x1p63;
  APInt wide(
      128,
      static_cast<uint64_t>(static_cast<int64_t>(isLarge ? x - 0x1p63 : x)),
      /*isSigned=*/true);
  if (isLarge)
    wide.setBit(63);
  return wide.trunc(bits);
}

/// The number of some bits.
static double numberOf(Type type, const APInt &bits) {
  return isUnsigned(getElementTypeOrSelf(type)) ? bits.roundToDouble(false)
                                                : bits.roundToDouble(true);
}

double reference::quotient(Type type, double x, double y) {
  if (isFloat(type))
    return x / y;
  if (y == 0)
    return 0;
  APInt p = bitsOf(type, x), q = bitsOf(type, y);
  bool none = isUnsigned(getElementTypeOrSelf(type));
  return numberOf(type, none ? p.udiv(q) : p.sdiv(q));
}

double reference::remainder(Type type, double x, double y) {
  if (isFloat(type))
    return std::fmod(x, y);
  if (y == 0)
    return x;
  APInt p = bitsOf(type, x), q = bitsOf(type, y);
  bool none = isUnsigned(getElementTypeOrSelf(type));
  return numberOf(type, none ? p.urem(q) : p.srem(q));
}

double reference::power(Type type, double x, double y) {
  if (isFloat(type))
    return std::pow(x, y);
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (std::fmod(y, 2) == 0 ? 1 : -1) : 0;
  APInt base = bitsOf(type, x), result(base.getBitWidth(), 1);
  for (APInt n = bitsOf(type, y); !n.isZero(); n.lshrInPlace(1)) {
    if (n[0])
      result *= base;
    base *= base;
  }
  return numberOf(type, result);
}

double reference::bitAnd(Type type, double x, double y) {
  return numberOf(type, bitsOf(type, x) & bitsOf(type, y));
}
double reference::bitOr(Type type, double x, double y) {
  return numberOf(type, bitsOf(type, x) | bitsOf(type, y));
}
double reference::bitXor(Type type, double x, double y) {
  return numberOf(type, bitsOf(type, x) ^ bitsOf(type, y));
}
double reference::bitNot(Type type, double x) {
  return numberOf(type, ~bitsOf(type, x));
}

double reference::shiftLeft(Type type, double x, double y) {
  APInt bits = bitsOf(type, x);
  bool isInside = y >= 0 && y < bits.getBitWidth();
  return isInside ? numberOf(type, bits << static_cast<unsigned>(y)) : 0;
}

double reference::shiftRight(Type type, double x, double y) {
  APInt bits = bitsOf(type, x);
  bool isInside = y >= 0 && y < bits.getBitWidth();
  if (isUnsigned(getElementTypeOrSelf(type)))
    return isInside ? numberOf(type, bits.lshr(static_cast<unsigned>(y))) : 0;
  return numberOf(type, bits.ashr(isInside ? static_cast<unsigned>(y)
                                           : bits.getBitWidth() - 1));
}
