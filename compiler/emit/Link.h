//===- Link.h - links object files in process -----------------------------===//
#ifndef TANDEM_COMPILER_EMIT_LINK_H
#define TANDEM_COMPILER_EMIT_LINK_H

#include "runtime/artifact/Status.h"

#include <string>
#include <vector>

namespace tandem {

/// Returns the shared object made of ELF object files (given as bytes), linked
/// by LLD as a library.
Result<std::string> linkSharedObject(const std::vector<std::string> &objects);

} // namespace tandem

#endif
