//===- ScheduleCacheFuzz.cpp - any bytes as a cache of schedules ----------===//
//
// A cache that is accepted is written as a text that reads as the same cache;
// one that is not has a message.
//
//===----------------------------------------------------------------------===//
#include "compiler/tune/ScheduleCache.h"
#include "tests/fuzz/Fuzz.h"

#include "mlir/IR/MLIRContext.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // One context for all rounds: it only grows by distinct attributes.
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  auto cache = ScheduleCache::parse(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "cache.json",
      &context);
  if (!cache) {
    requireMessage(cache.status());
    return 0;
  }
  std::string text = cache->text();
  auto again = ScheduleCache::parse(text, "again.json", &context);
  require(again.ok() && again->text() == text);
  return 0;
}
