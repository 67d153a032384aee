//===- LoraSpec.h - ".*attn.*:rank=8,alpha=16" ----------------------------===//
#ifndef TANDEM_PASSES_ADAPTERS_LORASPEC_H
#define TANDEM_PASSES_ADAPTERS_LORASPEC_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// Which weights get low-rank adapters, and of which size.
struct LoraSpec {
  std::string weights; ///< an expression for the names of parameters
  int64_t rank = 8;
  double alpha = 8; ///< the product of the factors is scaled by alpha / rank
  /// An expression for the names of parameters that are trained whole, and have
  /// no adapter; empty: none is.
  std::string whole;
};

/// Parses `REGEX:rank=N[,alpha=X][,modules_to_save=REGEX]`; alpha is the rank
/// if it is not said. Otherwise returns nothing, and `error` says what is
/// wrong.
std::optional<LoraSpec> parseLoraSpec(llvm::StringRef text, std::string &error);

} // namespace tandem

#endif
