//===- DType.h - the element types of tensors -----------------------------===//
//
// The one list of element types that the artifact, the runtime and (through
// the manifest's spelling) the compiler agree on. Spellings are MLIR's
// ("f32", "i64", "f8E5M2"), with "u8" for ui8 and so on, and "bool" for i1,
// which is stored as one byte, 0 or 1. Their numbers are those of the C API.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_DTYPE_H
#define TANDEM_RUNTIME_ARTIFACT_DTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::artifact {

enum class DType : uint8_t {
  Bool,
  I8,
  U8,
  I16,
  I32,
  I64,
  F16,
  BF16,
  F32,
  F64,
  U16,
  U32,
  U64,
  F8E4M3FN, ///< finite and NaN: no infinity
  F8E5M2
};

inline constexpr DType kLastDType = DType::F8E5M2;

/// Returns the bytes of one element.
constexpr int64_t byteSize(DType type) {
  switch (type) {
  case DType::Bool:
  case DType::I8:
  case DType::U8:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
    return 1;
  case DType::I16:
  case DType::U16:
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::I32:
  case DType::U32:
  case DType::F32:
    return 4;
  case DType::I64:
  case DType::U64:
  case DType::F64:
    return 8;
  }
  return 0;
}

/// Returns whether elements are integers without sign.
constexpr bool isUnsigned(DType type) {
  return type == DType::U8 || (type >= DType::U16 && type <= DType::U64);
}
/// Returns whether elements are integers or bools.
constexpr bool isInteger(DType type) {
  return type <= DType::I64 || isUnsigned(type);
}
/// Returns whether elements are numbers that gradients are made of.
constexpr bool isFloat(DType type) {
  return type >= DType::F16 && type <= DType::F64;
}

/// Returns the spelling used in manifests and messages.
constexpr std::string_view spelling(DType type) {
  constexpr std::string_view names[] = {
      "bool", "i8",  "u8",  "i16", "i32", "i64",      "f16",   "bf16",
      "f32",  "f64", "u16", "u32", "u64", "f8E4M3FN", "f8E5M2"};
  return names[static_cast<int>(type)];
}

/// Returns the type spelled `name`, or nothing.
constexpr std::optional<DType> parseDType(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(kLastDType); ++i)
    if (spelling(static_cast<DType>(i)) == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

} // namespace tandem::artifact

#endif
