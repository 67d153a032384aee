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

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem::io::test {

using artifact::DType;

/// A new folder, removed at the end of the test.
class Folder {
public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tandem-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  Folder(const Folder &) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string &name) const {
    return path_ + "/" + name;
  }
  const std::string &path() const { return path_; }
  /// Returns the names in the folder, sorted.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

private:
  std::string path_;
};

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
