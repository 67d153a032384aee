//===- NpzFuzz.cpp - any bytes as an .npz file ----------------------------===//
//
// Every member of an archive that opens is read. Members are guarded by
// checksums, so most mutations end there; NpyFuzz goes on behind them.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Npz.h"
#include "tests/fuzz/Fuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto archive = io::NpzArchive::open(std::as_bytes(std::span(data, size)));
  if (!archive) {
    requireMessage(archive.status());
    return 0;
  }
  for (const std::string &name : archive->names()) {
    auto array = archive->read(name);
    if (array)
      requireWhole(*array);
    else
      requireMessage(array.status());
  }
  requireMessage(archive->read("no such array").status());
  return 0;
}
