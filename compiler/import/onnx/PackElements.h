//===- PackElements.h - bytes of the elements in a tensor's fields --------===//
//
// A tensor of ONNX without raw bytes has its elements in fields that are as
// wide as their type or wider.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_PACKELEMENTS_H
#define TANDEM_COMPILER_IMPORT_ONNX_PACKELEMENTS_H

#include "compiler/import/onnx/Graph.h"

#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tandem::onnx {

/// Returns the first element that `To` does not hold, as text, if there is one.
template <typename To, typename List>
std::optional<std::string> pack(const List &list, std::string &bytes) {
  std::optional<std::string> beyond;
  bytes.resize(list.size() * sizeof(To));
  char *out = bytes.data();
  for (auto element : list) {
    To converted = static_cast<To>(element);
    std::memcpy(out, &converted, sizeof converted);
    out += sizeof converted;
    if constexpr (std::is_integral_v<To>)
      if (!beyond && !std::in_range<To>(element))
        beyond = std::to_string(element);
  }
  return beyond;
}

/// As `pack`, of fields of 32 bits that hold elements of fewer.
template <typename List>
std::optional<std::string> packNarrow(ElementKind kind, int64_t unit,
                                      const List &list, std::string &bytes) {
  switch (kind) {
  case ElementKind::I8:
    return pack<int8_t>(list, bytes);
  case ElementKind::I16:
    return pack<int16_t>(list, bytes);
  case ElementKind::Bool:
    for (auto element : list)
      bytes.push_back(element != 0);
    return std::nullopt;
  default: // also the bits of floats
    return unit == 2 ? pack<uint16_t>(list, bytes) : pack<uint8_t>(list, bytes);
  }
}

} // namespace tandem::onnx

#endif
