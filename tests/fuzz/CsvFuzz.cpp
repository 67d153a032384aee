//===- CsvFuzz.cpp - any bytes as a table ---------------------------------===//
//
// A table that is accepted has an array of as many numbers as its shape says,
// whatever columns are asked for, and is the same when it is written and read
// again.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Csv.h"
#include "tests/fuzz/Fuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  for (const char *columns : {"", "1", "2..3", "-1", "a..b,c"}) {
    auto array = io::parseCsv(text, columns, "a");
    if (!array) {
      requireMessage(array.status());
      continue;
    }
    requireWhole(*array);
    if (array->shape.size() < 2 || array->bytes.empty())
      continue;
    const io::CsvColumns table[] = {{"c", *array}};
    auto again = io::parseCsv(io::csvText(table), "", "");
    require(again.ok() && again->shape == array->shape);
  }
  return 0;
}
