//===- DialectFuzz.cpp - any bytes as a module of the dialect -------------===//
//
// The input is the text of a .mlir. A module that is taken goes through all
// phases that are left, and prints and parses to itself; one that is not has a
// message. The last byte says what is asked of the compilation.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/DialectFuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const uint8_t> bytes(data, size);
  Decisions next(bytes.last(std::min<size_t>(size, 1)));
  compileText({reinterpret_cast<const char *>(data), size}, optionsFrom(next));
  return 0;
}
