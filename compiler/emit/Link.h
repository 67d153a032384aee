//===- Link.h - links object files in process -----------------------------===//
#ifndef TANDEM_COMPILER_EMIT_LINK_H
#define TANDEM_COMPILER_EMIT_LINK_H

#include "runtime/artifact/Status.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tandem {

/// Returns the object file (its bytes) with the symbol `from` called `to`.
Result<std::string> renameSymbol(llvm::StringRef object, llvm::StringRef from,
                                 llvm::StringRef to);

/// Returns the shared object made of ELF object files (given as bytes), linked
/// by LLD as a library. It exports `exported` and nothing else; where that is
/// empty, all that the objects define for others.
Result<std::string>
linkSharedObject(const std::vector<std::string> &objects,
                 const std::vector<std::string> &exported = {});

} // namespace tandem

#endif
