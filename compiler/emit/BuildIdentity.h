//===- BuildIdentity.h - which compiler this is, to the byte --------------===//
#ifndef TANDEM_COMPILER_EMIT_BUILDIDENTITY_H
#define TANDEM_COMPILER_EMIT_BUILDIDENTITY_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem {

/// Returns a hash, in hexadecimal, of the program and the shared libraries that
/// are loaded when it is first called: of their build ids, or of the files of
/// those that have none. Tables, passes, LLVM and libm's folded constants are
/// all in these. Fails where a file cannot be read.
Result<std::string> buildIdentity();

} // namespace tandem

#endif
