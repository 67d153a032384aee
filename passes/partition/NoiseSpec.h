//===- NoiseSpec.h - "0.01,gamma=0.55" ------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_NOISESPEC_H
#define TANDEM_PASSES_PARTITION_NOISESPEC_H

#include "ir/Expr.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// Noise in gradients (Neelakantan et al. 2015, arXiv:1511.06807): normal, of
/// mean 0 and of variance eta / (1 + updates)^gamma.
struct NoiseSpec {
  double eta = 0, gamma = 0;

  /// The gradient with noise. `state` is a seed and the number of updates
  /// before this one; numbers of one state that differ in `param` differ.
  Expr added(const Expr &gradient, const Expr &state, size_t param) const;
  /// The state of the next update.
  static Expr next(const Expr &state);
};

/// Parses `0.01`, and `0.01,gamma=0.55`. Otherwise returns nothing, and `error`
/// says what is wrong.
std::optional<NoiseSpec> parseNoiseSpec(llvm::StringRef text,
                                        std::string &error);

} // namespace tandem

#endif
