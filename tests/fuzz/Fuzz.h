//===- Fuzz.h - what fuzz targets share -----------------------------------===//
#ifndef TANDEM_TESTS_FUZZ_FUZZ_H
#define TANDEM_TESTS_FUZZ_FUZZ_H

#include "runtime/io/Array.h"

#include <cstdlib>

namespace tandem::fuzz {

/// Ends the process, which is how a target tells of a broken promise.
inline void require(bool condition) {
  if (!condition)
    std::abort();
}

/// Whatever is refused is refused with a message that fits a line.
inline void requireMessage(const Status &status) {
  require(!status.ok() && !status.message().empty());
  for (char c : status.message())
    require(c >= 0x20 && c < 0x7f);
}

/// An array that was read holds what its shape says.
inline void requireWhole(const io::ArrayView &array) {
  auto count = io::elementCount(array.shape);
  require(count.has_value());
  require(array.bytes.size() ==
          size_t(*count) * size_t(artifact::byteSize(array.dtype)));
  if (array.dtype == artifact::DType::Bool)
    for (std::byte byte : array.bytes)
      require(uint8_t(byte) <= 1);
}

inline bool same(const io::ArrayView &a, const io::ArrayView &b) {
  return a.dtype == b.dtype &&
         std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(),
                    b.shape.end()) &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(),
                    b.bytes.end());
}

} // namespace tandem::fuzz

#endif
