//===- Elements.cpp - the reference's numbers in memory -------------------===//
#include "ir/reference/Elements.h"

#include "ir/Dialect.h"
#include "ir/reference/Generic.h"
#include "ir/reference/Rounding.h"

#include "llvm/ADT/bit.h"

#include <cstring>

using namespace mlir;
using namespace tandem;

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
  return APInt(bits, bitsOfInteger(number), /*isSigned=*/false,
               /*implicitTrunc=*/true);
}

double reference::numberOfBits(Type element, const APInt &bits) {
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return element.isInteger(1) ? double(bits.getZExtValue())
                                : numberOf(element, bits);
  APFloat value(type.getFloatSemantics(), bits);
  bool lost;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}

// Tests and checks convert tensors of millions, so the usual floats do not ask
// for their type at each element.

void reference::encode(const Array &array, Type type, void *to) {
  auto *bytes = static_cast<char *>(to);
  int64_t size = elementBytes(type);
  if (type.isF64()) {
    std::memcpy(bytes, array.data.data(), array.size() * sizeof(double));
    return;
  }
  bool isBF16 = type.isBF16(), isF32 = type.isF32();
  auto brain = isBF16 ? cast<FloatType>(type) : FloatType();
  for (int64_t i = 0; i < array.size(); ++i) {
    uint64_t bits;
    if (isF32)
      bits = llvm::bit_cast<uint32_t>(static_cast<float>(array[i]));
    else if (isBF16) // the upper half of the f32 that it is
      bits = llvm::bit_cast<uint32_t>(
                 static_cast<float>(roundedTo(brain, array[i]))) >>
             16;
    else
      bits = bitsOf(type, array[i]).getZExtValue();
    std::memcpy(bytes + i * size, &bits, size);
  }
}

reference::Array reference::decode(const void *from, RankedTensorType type) {
  Array array(type);
  Type element = type.getElementType();
  const auto *bytes = static_cast<const char *>(from);
  int64_t size = elementBytes(element);
  if (element.isF64()) {
    std::memcpy(array.data.data(), bytes, array.size() * sizeof(double));
    return array;
  }
  bool isBF16 = element.isBF16(), isF32 = element.isF32();
  unsigned width = element.getIntOrFloatBitWidth();
  for (int64_t i = 0; i < array.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * size, size);
    if (isF32 || isBF16)
      array[i] = llvm::bit_cast<float>(
          static_cast<uint32_t>(isBF16 ? bits << 16 : bits));
    else
      array[i] = numberOfBits(element, APInt(width, bits));
  }
  return array;
}
