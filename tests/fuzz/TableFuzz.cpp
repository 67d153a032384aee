//===- TableFuzz.cpp - any bytes as a file of Parquet or Arrow ------------===//
//
// What is opened has columns and groups whose rows are read whole, or it is
// said why not.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/DType.h"
#include "runtime/tables/Tables.h"
#include "tests/fuzz/Fuzz.h"

#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace tandem;
using namespace tandem::fuzz;

extern "C" const tables::Reader *tandem_arrow();

namespace {

void requireReason(const tables::Reason &reason) {
  require(reason.text[0] != 0 && std::strlen(reason.text) < sizeof reason);
  for (unsigned char c : std::string_view(reason.text))
    require(c >= 0x20 && c != 0x7f);
}

/// Reads one column, if it is small.
void readColumn(const tables::Reader &reader, const tables::File *file,
                int64_t index) {
  tables::Column column = {};
  reader.column(file, index, &column);
  require(column.name && column.type && column.rank <= tables::kMostDims);
  if (column.element < 0)
    return;
  for (int64_t group = 0; group < reader.groups(file); ++group) {
    tables::Reason reason = {};
    int64_t rows = reader.rows(file, group);
    require(rows >= 0);
    if (rows == 0)
      continue;
    tables::Column found = column;
    if (reader.sizes(file, group, &found, index, &reason)) {
      requireReason(reason);
      continue;
    }
    int64_t bytes = artifact::byteSize(artifact::DType(column.element));
    for (int d = 0; d < found.rank; ++d) {
      found.sizes[d] = std::max<int64_t>(found.sizes[d], 0);
      bytes = found.sizes[d] > (1 << 16) ? -1 : bytes * found.sizes[d];
      if (bytes < 0 || bytes > 1 << 16)
        return;
    }
    // Rows of 0 elements take no bytes, however many there are.
    if (bytes > 0 && rows > 4096)
      continue;
    std::vector<std::byte> numbers(size_t(rows * bytes));
    tables::Place place = {index, numbers.data(), bytes, found.sizes};
    if (reader.read(file, group, &place, 1, &reason))
      requireReason(reason);
    else if (artifact::DType(column.element) == artifact::DType::Bool)
      for (std::byte byte : numbers)
        require(uint8_t(byte) <= 1);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int memory = ::memfd_create("table", MFD_CLOEXEC);
  require(memory >= 0 && ::ftruncate(memory, 0) == 0 &&
          ::pwrite(memory, data, size, 0) == ssize_t(size));
  const tables::Reader &reader = *tandem_arrow();
  tables::Reason reason = {};
  tables::File *file = nullptr;
  std::string path = "/proc/self/fd/" + std::to_string(memory);
  if (reader.open(path.c_str(), &file, &reason)) {
    requireReason(reason);
    return 0;
  }
  for (int64_t i = 0; i < reader.columns(file); ++i)
    readColumn(reader, file, i);
  reader.close(file);
  return 0;
}
