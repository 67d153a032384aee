//===- ImageRows.h - encoded images as rows of bytes ----------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_IMAGEROWS_H
#define TANDEM_TOOLS_COMMANDS_IMAGEROWS_H

#include "tools/commands/RowSource.h"

namespace tandem::commands {

/// Gives `array` a row for each of `files`, PNG or JPEG, as bytes in the layout
/// of the input `value`; `fit` is what makes them of its size, as ImageFit
/// reads it. What is not decoded at once is decoded when a row is needed for
/// the first time, and kept in a file without a name in TMPDIR, if that has
/// room for all: ranks decode their own rows alone. Fails with Usage where an
/// image does not fit; Unsupported without libtandem-images.so.
Status takeImages(NamedArray &array, std::shared_ptr<const FileSource> files,
                  std::string_view fit, const artifact::Value &value);

} // namespace tandem::commands

#endif
