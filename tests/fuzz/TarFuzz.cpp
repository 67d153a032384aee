//===- TarFuzz.cpp - any bytes as a tar -----------------------------------===//
//
// Files lie inside of the archive, one behind the other, and have names; what
// is wrong is said, and reading comes to an end.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Tar.h"
#include "tests/fuzz/Fuzz.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::fuzz;

/// Mutations seldom have the sum of their header: it is made anew, so that they
/// are looked at behind it.
static void mendSums(std::vector<std::byte> &bytes) {
  for (size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    auto header = std::span(bytes).subspan(at, 512);
    if (io::asText(header).substr(257, 5) != "ustar")
      continue;
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i)
      sum += i >= 148 && i < 156 ? 32u : unsigned(header[i]);
    for (size_t i = 0; i < 6; ++i)
      header[148 + i] = std::byte('0' + (sum >> (3 * (5 - i)) & 7));
    header[154] = std::byte(0);
    header[155] = std::byte(' ');
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto given = std::as_bytes(std::span(data, size));
  for (bool isMended : {false, true}) {
    std::vector<std::byte> bytes(given.begin(), given.end());
    if (isMended)
      mendSums(bytes);
    io::TarReader reader(
        [&](int64_t offset, std::span<std::byte> to) {
          require(offset >= 0 && offset + int64_t(to.size()) <= int64_t(size));
          std::copy_n(bytes.begin() + offset, to.size(), to.begin());
          return Status::success();
        },
        int64_t(size));
    int64_t last = 0;
    while (true) {
      auto member = reader.next();
      if (!member) {
        requireMessage(member.status());
        break;
      }
      if (!*member)
        break;
      require((*member)->offset > last && (*member)->size >= 0);
      require((*member)->offset + (*member)->size <= int64_t(size));
      require((*member)->name.find('\0') == std::string::npos);
      last = (*member)->offset;
    }
  }
  return 0;
}
