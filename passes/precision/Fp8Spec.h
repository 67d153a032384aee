//===- Fp8Spec.h - ".*attn.*:amax_history_len=16,margin=1" ----------------===//
//
// The keys are those of the recipe `DelayedScaling` of NVIDIA's Transformer
// Engine, and so is the default of the length. Formats are those of its HYBRID:
// factors of the forward are f8E4M3FN, gradients f8E5M2.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PRECISION_FP8SPEC_H
#define TANDEM_PASSES_PRECISION_FP8SPEC_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// Which products are of f8 values, and how these are scaled.
struct Fp8Spec {
  std::string weights;          ///< an expression for the names of parameters
  int64_t historyLength = 1024; ///< calls whose largest magnitudes are kept
  int64_t margin = 0;           ///< scales are divided by 2^margin
};

/// Parses `REGEX[:amax_history_len=N,margin=N]`. Otherwise returns nothing,
/// and `error` says what is wrong.
std::optional<Fp8Spec> parseFp8Spec(llvm::StringRef text, std::string &error);

} // namespace tandem

#endif
