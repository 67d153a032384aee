//===- Rounding.cpp - what the reference rounds ---------------------------===//
#include "ir/reference/Rounding.h"

using namespace mlir;
using namespace tandem;

double reference::roundedTo(FloatType type, double number) {
  APFloat value(number);
  bool lost;
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}

void reference::roundToType(Type element, Array &array) {
  if (element.isF16() || element.isBF16())
    for (double &x : array.data)
      x = roundedTo(cast<FloatType>(element), x);
}
