//===- Fuzz.h - what fuzz targets share -----------------------------------===//
#ifndef TANDEM_TESTS_FUZZ_FUZZ_H
#define TANDEM_TESTS_FUZZ_FUZZ_H

#include "runtime/artifact/Text.h"
#include "runtime/io/Array.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>

namespace tandem::fuzz {

/// Ends the process, which is how a target tells of a broken promise.
inline void
require(bool condition,
        std::source_location where = std::source_location::current()) {
  if (condition)
    return;
  std::fprintf(stderr, "%s:%u: a promise is broken\n", where.file_name(),
               unsigned(where.line()));
  std::abort();
}

/// Whatever is refused is refused with a message that fits a line.
inline void requireMessage(const Status &status) {
  require(!status.ok() && !status.message().empty());
  for (char c : status.message())
    require(c >= 0x20 && c < 0x7f);
}

/// What options and files of plans are refused with is printed as forScreen()
/// makes it, which leaves newlines and tabs.
inline void requireShown(const std::string &message) {
  std::string shown = artifact::forScreen(message);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  require(!shown.empty());
  // Letters of other alphabets stay.
  for (unsigned char c : shown)
    require(c >= 0x20 && c != 0x7f);
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
