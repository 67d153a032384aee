//===- ElementTypes.h - the element types as C++ types --------------------===//
//
// Internal to this folder: what loops over elements of any type are made from.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_ELEMENTTYPES_H
#define TANDEM_RUNTIME_IO_ELEMENTTYPES_H

#include "runtime/io/Array.h"
#include "runtime/tensor/Half.h"

#include <type_traits>

namespace tandem::io {

using artifact::DType;

/// An IEEE half, the upper half of an f32, and the floats of 8 bits (the upper
/// half of an IEEE half among them), as bits: C++20 has no such types.
/// Rounding a double goes through a float rounded to odd, so that it happens
/// once.
struct Half {
  uint16_t bits;

  operator double() const { return runtime::floatFromF16(bits); }
  static Half from(double value) {
    return {runtime::f16FromFloat(runtime::floatRoundedToOdd(value))};
  }
};
struct BFloat {
  uint16_t bits;

  operator double() const { return runtime::floatFromBF16(bits); }
  static BFloat from(double value) {
    return {runtime::bf16FromFloat(runtime::floatRoundedToOdd(value))};
  }
};
struct Finite8 {
  uint8_t bits;

  operator double() const { return runtime::floatFromF8E4M3FN(bits); }
  static Finite8 from(double value) {
    return {runtime::f8E4M3FNFromFloat(runtime::floatRoundedToOdd(value))};
  }
};
struct Half8 {
  uint8_t bits;

  operator double() const { return runtime::floatFromF8E5M2(bits); }
  static Half8 from(double value) {
    return {runtime::f8E5M2FromFloat(runtime::floatRoundedToOdd(value))};
  }
};

/// A bool's byte, told apart from u8.
struct Boolean {
  uint8_t byte;
};

/// Calls `body` with a value of the C++ type of `dtype`.
template <typename Body> auto withType(DType dtype, Body body) {
  switch (dtype) {
  case DType::Bool:
    return body(Boolean{});
  case DType::I8:
    return body(int8_t{});
  case DType::U8:
    return body(uint8_t{});
  case DType::I16:
    return body(int16_t{});
  case DType::I32:
    return body(int32_t{});
  case DType::I64:
    return body(int64_t{});
  case DType::U16:
    return body(uint16_t{});
  case DType::U32:
    return body(uint32_t{});
  case DType::U64:
    return body(uint64_t{});
  case DType::F8E4M3FN:
    return body(Finite8{});
  case DType::F8E5M2:
    return body(Half8{});
  case DType::F16:
    return body(Half{});
  case DType::BF16:
    return body(BFloat{});
  case DType::F32:
    return body(float{});
  case DType::F64:
    break;
  }
  return body(double{});
}

/// One of the types above that round by `from`.
template <typename T> constexpr bool isShort = requires(double value) {
  T::from(value);
};
template <typename T>
constexpr bool isReal = isShort<T> || std::is_floating_point_v<T>;

template <typename T> T load(const std::byte *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * int64_t(sizeof(T)), sizeof(T));
  return value;
}

template <typename T> auto plain(T value) {
  if constexpr (std::is_same_v<T, Boolean>)
    return int64_t(value.byte != 0);
  else if constexpr (isReal<T>)
    return double(value);
  else if constexpr (std::is_same_v<T, uint64_t>)
    return value;
  else
    return int64_t(value);
}

template <typename T> T rounded(double value) {
  if constexpr (isShort<T>)
    return T::from(value);
  else
    return static_cast<T>(value);
}

} // namespace tandem::io

#endif
