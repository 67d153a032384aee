//===- BudgetSpec.h - "0.5" or "6GiB" -------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_BUDGETSPEC_H
#define TANDEM_PASSES_PARTITION_BUDGETSPEC_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// How much memory a step may take at its peak.
struct BudgetSpec {
  /// In [0, 1]: 0 the least that is possible, 1 what the fastest plan takes.
  /// Nothing: `bytes` says it.
  std::optional<double> part;
  int64_t bytes = 0;

  /// The limit where the least possible peak and that of the fastest plan are
  /// known.
  int64_t limit(int64_t least, int64_t fastest) const;
};

/// Parses a number from 0 to 1, or bytes: a whole number from 2 on, or any
/// number with a unit (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB). Otherwise
/// returns nothing, and `error` says what was expected.
std::optional<BudgetSpec> parseBudgetSpec(llvm::StringRef text,
                                          std::string &error);

/// "6.5 MiB"; below 1024 "17 bytes".
std::string readableBytes(int64_t bytes);

} // namespace tandem

#endif
