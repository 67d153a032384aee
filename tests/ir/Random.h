//===- Random.h - arrays of numbers that are the same in every run --------===//
#ifndef TANDEM_TESTS_IR_RANDOM_H
#define TANDEM_TESTS_IR_RANDOM_H

#include "ir/reference/Array.h"

#include <random>

namespace tandem::test {

/// An array of `type`: floats uniform in [low, high), integers in [0, count).
inline reference::Array randomArray(mlir::RankedTensorType type,
                                    std::mt19937_64 &random, double low,
                                    double high, int64_t count) {
  reference::Array array(type);
  bool isFloat = mlir::isa<mlir::FloatType>(type.getElementType());
  for (double &element : array.data) {
    // 53 bits: the same on every standard library, unlike its distributions.
    double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    element = isFloat ? low + unit * (high - low)
                      : std::floor(unit * static_cast<double>(count));
  }
  return array;
}

} // namespace tandem::test

#endif
