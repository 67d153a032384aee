//===- DType.h - the element types of tensors -----------------------------===//
//
// The one list of element types that the artifact, the runtime and (through
// the manifest's spelling) the compiler agree on. Spellings are MLIR's
// ("f32", "i64"), with "bool" for i1, which is stored as one byte, 0 or 1.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_DTYPE_H
#define TANDEM_RUNTIME_ARTIFACT_DTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::artifact {

enum class DType : uint8_t { Bool, I8, U8, I16, I32, I64, F16, BF16, F32, F64 };

/// Returns the bytes of one element.
constexpr int64_t byteSize(DType type) {
  switch (type) {
  case DType::Bool:
  case DType::I8:
  case DType::U8:
    return 1;
  case DType::I16:
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::I32:
  case DType::F32:
    return 4;
  case DType::I64:
  case DType::F64:
    return 8;
  }
  return 0;
}

/// Returns the spelling used in manifests and messages.
constexpr std::string_view spelling(DType type) {
  constexpr std::string_view names[] = {"bool", "i8",  "u8",   "i16", "i32",
                                        "i64",  "f16", "bf16", "f32", "f64"};
  return names[static_cast<int>(type)];
}

/// Returns the type spelled `name`, or nothing.
constexpr std::optional<DType> parseDType(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::F64); ++i)
    if (spelling(static_cast<DType>(i)) == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

} // namespace tandem::artifact

#endif
