//===- ClipSpec.h - "norm:1.0" --------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_CLIPSPEC_H
#define TANDEM_PASSES_PARTITION_CLIPSPEC_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// How gradients are made smaller before an optimizer sees them.
struct ClipSpec {
  enum class Kind {
    Norm, ///< all by one factor, so that their L2 norm is at most `most`
    Value ///< each element to [-most, most]
  };
  Kind kind = Kind::Norm;
  double most = 0;
};

/// Parses `norm:NUMBER` or `value:NUMBER`, a number above 0 of f32. Otherwise
/// returns nothing, and `error` says what is wrong.
std::optional<ClipSpec> parseClipSpec(llvm::StringRef text, std::string &error);

} // namespace tandem

#endif
