//===- Bytes.h - files and bytes for the tests of the formats -------------===//
//
// Fixtures written by NumPy (see fixtures/make_fixtures.py), folders that
// vanish with the test, and short ways to spell bytes and arrays.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_IO_BYTES_H
#define TANDEM_TESTS_RUNTIME_IO_BYTES_H

#include "runtime/io/Array.h"
#include "runtime/io/File.h"
#include "tests/support/Folder.h"

#include <gtest/gtest.h>

namespace tandem::io::test {

using artifact::DType;

using tandem::test::Folder;

inline std::vector<std::byte> bytesOf(std::string_view text) {
  std::vector<std::byte> bytes;
  appendText(bytes, text);
  return bytes;
}

inline std::vector<std::byte> load(const std::string &path) {
  auto bytes = readFile(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes ? *bytes : std::vector<std::byte>();
}

inline void store(const std::string &path, Bytes bytes) {
  Status status = replaceFile(path, std::span(&bytes, 1));
  ASSERT_TRUE(status.ok()) << status.message();
}

template <typename T> std::vector<T> elements(const ArrayView &array) {
  std::vector<T> result(array.bytes.size() / sizeof(T));
  if (!result.empty()) // memcpy takes no null, which an optimizer relies on
    std::memcpy(result.data(), array.bytes.data(), result.size() * sizeof(T));
  return result;
}

template <typename T>
Array arrayOf(DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  Array array{dtype, std::move(shape), {}};
  for (T value : values)
    appendInteger(array.bytes, value);
  return array;
}

} // namespace tandem::io::test

#endif
