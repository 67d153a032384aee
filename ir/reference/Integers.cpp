//===- Integers.cpp - what depends on the type of the numbers -------------===//
#include "ir/reference/Integers.h"
#include "ir/reference/Elements.h"
#include "ir/reference/Generic.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APInt.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

// These are asked for each element: which float a type is, and whether one that
// is no tensor has elements, are longer questions.
static Type elementOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getElementType() : type;
}
static bool isFloat(Type type) { return !elementOf(type).isInteger(); }
static bool isUnsigned(Type type) { return isUnsignedType(elementOf(type)); }

/// A number that the type holds, as its bits.
static APInt asBits(Type type, double x) {
  return reference::bitsOf(elementOf(type), x);
}

/// The number of some bits.
static double asNumber(Type type, const APInt &bits) {
  return numberOf(elementOf(type), bits);
}

double reference::quotient(Type type, double x, double y) {
  if (isFloat(type))
    return x / y;
  if (y == 0)
    return 0;
  APInt p = asBits(type, x), q = asBits(type, y);
  bool none = isUnsigned(type);
  return asNumber(type, none ? p.udiv(q) : p.sdiv(q));
}

double reference::remainder(Type type, double x, double y) {
  if (isFloat(type))
    return std::fmod(x, y);
  if (y == 0)
    return x;
  APInt p = asBits(type, x), q = asBits(type, y);
  bool none = isUnsigned(type);
  return asNumber(type, none ? p.urem(q) : p.srem(q));
}

double reference::power(Type type, double x, double y) {
  if (isFloat(type))
    return std::pow(x, y);
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (std::fmod(y, 2) == 0 ? 1 : -1) : 0;
  APInt base = asBits(type, x), result(base.getBitWidth(), 1);
  for (APInt n = asBits(type, y); !n.isZero(); n.lshrInPlace(1)) {
    if (n[0])
      result *= base;
    base *= base;
  }
  return asNumber(type, result);
}

double reference::bitAnd(Type type, double x, double y) {
  return asNumber(type, asBits(type, x) & asBits(type, y));
}
double reference::bitOr(Type type, double x, double y) {
  return asNumber(type, asBits(type, x) | asBits(type, y));
}
double reference::bitXor(Type type, double x, double y) {
  return asNumber(type, asBits(type, x) ^ asBits(type, y));
}
double reference::bitNot(Type type, double x) {
  return asNumber(type, ~asBits(type, x));
}

double reference::shiftLeft(Type type, double x, double y) {
  APInt bits = asBits(type, x);
  bool isInside = y >= 0 && y < bits.getBitWidth();
  return isInside ? asNumber(type, bits << static_cast<unsigned>(y)) : 0;
}

double reference::shiftRight(Type type, double x, double y) {
  APInt bits = asBits(type, x);
  bool isInside = y >= 0 && y < bits.getBitWidth();
  if (isUnsigned(type))
    return isInside ? asNumber(type, bits.lshr(static_cast<unsigned>(y))) : 0;
  return asNumber(type, bits.ashr(isInside ? static_cast<unsigned>(y)
                                           : bits.getBitWidth() - 1));
}
