//===- Array.h - what a file of numbers holds -----------------------------===//
//
// The value that every format of this folder reads into and writes from: an
// element type, a shape, and the elements, dense, row-major, little-endian (the
// byte order of every host Tandem runs on; checked below). `bool` is a byte,
// 0 or 1.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_ARRAY_H
#define TANDEM_RUNTIME_IO_ARRAY_H

#include "runtime/artifact/DType.h"
#include "runtime/artifact/Status.h"
#include "runtime/artifact/Text.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::io {

static_assert(std::endian::native == std::endian::little,
              "the file formats are read and written without byte swaps");

using Bytes = std::span<const std::byte>;

/// An array that owns its elements.
struct Array {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

/// An array whose elements somebody else owns.
struct ArrayView {
  artifact::DType dtype = artifact::DType::F32;
  std::span<const int64_t> shape;
  Bytes bytes;

  ArrayView() = default;
  ArrayView(artifact::DType dtype, std::span<const int64_t> shape, Bytes bytes)
      : dtype(dtype), shape(shape), bytes(bytes) {}
  ArrayView(const Array &array)
      : dtype(array.dtype), shape(array.shape), bytes(array.bytes) {}
};

/// Returns the number of elements of `shape`, or nothing if a dimension is
/// negative or the product, times 16 bytes, does not fit 63 bits.
inline std::optional<int64_t> elementCount(std::span<const int64_t> shape) {
  // Dimensions of zero are looked for first: [2^40, 2^40, 0] is a valid shape.
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    empty |= dim == 0;
  }
  if (empty)
    return 0;
  int64_t count = 1;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(count, dim, &count) ||
        count > (int64_t{1} << 58))
      return std::nullopt;
  return count;
}

/// Returns `shape` as "[2, 3]".
inline std::string shapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Returns the little-endian integer at `offset`; the caller has checked that
/// it lies inside `bytes`.
template <typename T> T loadInteger(Bytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

inline void appendText(std::vector<std::byte> &bytes, std::string_view text) {
  // Not insert(): g++ 12 warns of an overflow that its inlining imagines.
  size_t old = bytes.size();
  bytes.resize(old + text.size());
  for (size_t i = 0; i < text.size(); ++i)
    bytes[old + i] = std::byte(text[i]);
}

/// Appends the little-endian bytes of `value`.
template <typename T>
void appendInteger(std::vector<std::byte> &bytes, T value) {
  appendText(bytes, {reinterpret_cast<const char *>(&value), sizeof(T)});
}

inline std::string_view asText(Bytes bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

using artifact::inQuotes; ///< of text that came out of a file
using artifact::printable;

} // namespace tandem::io

#endif
