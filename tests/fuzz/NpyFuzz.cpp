//===- NpyFuzz.cpp - any bytes as an .npy file ----------------------------===//
//
// An array that is accepted is written and read again: the same array. It is
// converted to every other type, and back where that lost nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Elements.h"
#include "runtime/io/Npy.h"
#include "tests/fuzz/Fuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto array = io::parseNpy(std::as_bytes(std::span(data, size)));
  if (!array) {
    requireMessage(array.status());
    return 0;
  }
  requireWhole(*array);
  auto file = io::npyHeader(array->dtype, array->shape);
  if (!file) {
    requireMessage(file.status()); // more dimensions than version 1 can hold
    return 0;
  }
  file->insert(file->end(), array->bytes.begin(), array->bytes.end());
  auto again = io::parseNpy(*file);
  require(again.ok() && same(*array, *again));

  io::firstNonFinite(*array);
  for (int i = 0; i <= int(artifact::DType::F64); ++i) {
    auto converted = io::convertExactly(*array, artifact::DType(i));
    if (!converted) {
      requireMessage(converted.status());
      continue;
    }
    requireWhole(*converted);
    auto back = io::convertExactly(*converted, array->dtype);
    // A NaN may lose its payload, and -0 its sign as an integer.
    require(back.ok() && back->bytes.size() == array->bytes.size());
  }
  return 0;
}
