//===- Elements.cpp - the reference's numbers in memory -------------------===//
#include "ir/reference/Elements.h"

#include "ir/Dialect.h"
#include "ir/reference/Generic.h"
#include "ir/reference/Rounding.h"

#include "llvm/ADT/bit.h"

#include <cstring>

using namespace mlir;
using namespace tandem;

// Tests and checks convert tensors of millions. To ask a type which float it is
// takes longer than to convert a number, so it is asked once for all elements.

static APInt bitsOfFloat(const llvm::fltSemantics &semantics, double number) {
  APFloat value(number);
  bool lost;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  return value.bitcastToAPInt();
}

static double numberOfFloat(const llvm::fltSemantics &semantics,
                            const APInt &bits) {
  APFloat value(semantics, bits);
  bool lost;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}

/// Null of a type that is no float.
static const llvm::fltSemantics *semanticsOf(Type element) {
  auto type = dyn_cast<FloatType>(element);
  return type ? &type.getFloatSemantics() : nullptr;
}

static APInt bitsOfInteger(IntegerType element, double number) {
  unsigned bits = element.getWidth();
  if (bits == 64 && number == (isUnsignedType(element) ? 0x1p64 : 0x1p63))
    return isUnsignedType(element) ? APInt::getMaxValue(64)
                                   : APInt::getSignedMaxValue(64);
  return APInt(bits, reference::bitsOfInteger(number), /*isSigned=*/false,
               /*implicitTrunc=*/true);
}

static double numberOfInteger(IntegerType element, const APInt &bits) {
  return element.isInteger(1) ? double(bits.getZExtValue())
                              : numberOf(element, bits);
}

APInt reference::bitsOf(Type element, double number) {
  if (auto type = dyn_cast<IntegerType>(element))
    return ::bitsOfInteger(type, number);
  return bitsOfFloat(*semanticsOf(element), number);
}

double reference::numberOfBits(Type element, const APInt &bits) {
  if (auto type = dyn_cast<IntegerType>(element))
    return numberOfInteger(type, bits);
  return numberOfFloat(*semanticsOf(element), bits);
}

void reference::encode(const Array &array, Type type, void *to) {
  auto *bytes = static_cast<char *>(to);
  int64_t size = elementBytes(type);
  if (type.isF64()) {
    std::memcpy(bytes, array.data.data(), array.size() * sizeof(double));
    return;
  }
  bool isBF16 = type.isBF16(), isF32 = type.isF32();
  auto integer = dyn_cast<IntegerType>(type);
  const llvm::fltSemantics *semantics = semanticsOf(type);
  for (int64_t i = 0; i < array.size(); ++i) {
    uint64_t bits;
    if (isF32)
      bits = llvm::bit_cast<uint32_t>(static_cast<float>(array[i]));
    else if (isBF16) // the upper half of the f32 that it is
      bits = llvm::bit_cast<uint32_t>(
                 static_cast<float>(roundedTo(*semantics, array[i]))) >>
             16;
    else
      bits = (integer ? ::bitsOfInteger(integer, array[i])
                      : bitsOfFloat(*semantics, array[i]))
                 .getZExtValue();
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
  auto integer = dyn_cast<IntegerType>(element);
  const llvm::fltSemantics *semantics = semanticsOf(element);
  for (int64_t i = 0; i < array.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * size, size);
    if (isF32 || isBF16)
      array[i] = llvm::bit_cast<float>(
          static_cast<uint32_t>(isBF16 ? bits << 16 : bits));
    else
      array[i] = integer ? numberOfInteger(integer, APInt(width, bits))
                         : numberOfFloat(*semantics, APInt(width, bits));
  }
  return array;
}
