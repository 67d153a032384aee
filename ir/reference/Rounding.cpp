//===- Rounding.cpp - what the reference rounds ---------------------------===//
#include "ir/reference/Rounding.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

double reference::roundedTo(const llvm::fltSemantics &semantics,
                            double number) {
  double size = std::abs(number);
  double least = std::ldexp(1.0, APFloat::semanticsMinExponent(semantics));
  double end = std::ldexp(1.0, APFloat::semanticsMaxExponent(semantics));
  unsigned rest = 53 - APFloat::semanticsPrecision(semantics);
  if (rest > 0 && rest < 53 && size >= least && size < end) {
    // Neither too small for all digits nor too large: what is below the last
    // digit is rounded in the bits of the double.
    auto bits = llvm::bit_cast<uint64_t>(number);
    uint64_t half = uint64_t(1) << (rest - 1);
    bits += half - 1 + (bits >> rest & 1);
    return llvm::bit_cast<double>(bits & ~(2 * half - 1));
  }
  APFloat value(number);
  bool lost;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}

void reference::roundToType(Type element, Array &array) {
  if (!element.isF16() && !element.isBF16())
    return;
  const llvm::fltSemantics &type = cast<FloatType>(element).getFloatSemantics();
  for (double &x : array.data)
    x = roundedTo(type, x);
}
