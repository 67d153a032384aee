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

/// What to do where Parquet and Arrow are not read.
inline constexpr std::string_view withoutTables =
    "; in Python, 'numpy.save(\"F.npy\", pandas.read_parquet(\"F.parquet\")"
    ".to_numpy(\"float32\"))' writes what is read (read_feather for Arrow)";

} // namespace tandem::io

#endif
