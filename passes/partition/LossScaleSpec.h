//===- LossScaleSpec.h - "dynamic:init=65536" -----------------------------===//
#ifndef TANDEM_PASSES_PARTITION_LOSSSCALESPEC_H
#define TANDEM_PASSES_PARTITION_LOSSSCALESPEC_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// What a loss is multiplied by before it is differentiated, so that gradients
/// in f16 are no zeros. The defaults are those of torch.amp.GradScaler.
struct LossScaleSpec {
  /// Between these the reciprocal of a scale is a normal number of f32.
  static constexpr double kLeast = 0x1p-126, kMost = 0x1p126;

  bool isDynamic = false;
  double init = 65536;
  double growth = 2;      ///< after `interval` updates in a row
  double backoff = 0.5;   ///< after one that was left out
  double interval = 2000; ///< an integer
};

/// Parses `NUMBER`, `dynamic` or `dynamic:KEY=NUMBER,...`. Otherwise returns
/// nothing, and `error` says what is wrong.
std::optional<LossScaleSpec> parseLossScaleSpec(llvm::StringRef text,
                                                std::string &error);

} // namespace tandem

#endif
