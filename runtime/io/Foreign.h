//===- Foreign.h - files of other programs --------------------------------===//
//
// What to do with a file that this folder does not read, by its name or its
// first bytes, to be added to a message.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_FOREIGN_H
#define TANDEM_RUNTIME_IO_FOREIGN_H

#include "runtime/io/Array.h"

namespace tandem::io {

/// Returns "; ..." for a file called `path`, or an empty text.
std::string adviceFor(std::string_view path);

/// Returns "; ..." for a file with these bytes, or an empty text.
std::string adviceFor(Bytes file);

} // namespace tandem::io

#endif
