//===- UpdateAttributes.h - what a module says of its update --------------===//
//
// Beside `tandem.optimizer`, which they need. Each is a string that
// passes/partition reads (ClipSpec.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_UPDATEATTRIBUTES_H
#define TANDEM_IR_UPDATEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// How gradients are clipped before they are used: `norm:1.0`.
inline constexpr llvm::StringLiteral kClipAttr = "tandem.clip";

} // namespace tandem

#endif
