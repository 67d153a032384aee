//===- CoreAten.h - core ATen against what Tandem has ---------------------===//
#ifndef TANDEM_TOOLS_TANDEM_TABLE_COREATEN_H
#define TANDEM_TOOLS_TANDEM_TABLE_COREATEN_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// Prints docs/core-aten.md: for each name of `list` (a line each) what the
/// file `map` says that Tandem has. False, and a line each on stderr, if a name
/// is missing or unknown there, or what it says is neither an op nor a
/// function.
bool printCoreAten(llvm::StringRef list, llvm::StringRef map);

} // namespace tandem

#endif
