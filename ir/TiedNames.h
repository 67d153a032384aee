//===- TiedNames.h - further names of a parameter -------------------------===//
//
// A parameter that several modules of a model share is one parameter: it has
// one gradient and one state of the optimizer. Its role has the names that it
// has besides, by which a checkpoint may have it too:
//
//   #tandem.role<param "embed.w" {also_called = ["head.w"], requires_grad}>
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_TIEDNAMES_H
#define TANDEM_IR_TIEDNAMES_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// The property of a role: a list of names.
inline constexpr llvm::StringLiteral kAlsoCalled = "also_called";

} // namespace tandem

#endif
