//===- ImageFolder.h - images in folders that are their classes -----------===//
//
// NAME=@FOLDER/ has a row for each PNG or JPEG in the folder, or in its
// folders, which are classes then: in the order of their names, and of the
// files' names in them. NAME=@FOLDER/:labels has the numbers of the classes.
//
// What grows beyond 64 MiB is decoded when its rows are needed (ImageRows.h);
// of less, what cannot be decoded is told before the first step.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_IMAGEFOLDER_H
#define TANDEM_TOOLS_COMMANDS_IMAGEFOLDER_H

#include "tools/commands/Arrays.h"

namespace tandem::commands {

/// Reads the images, or labels, of a folder for the input `value`. Fails with
/// Usage, naming files and reasons, where there is none that fits; Unsupported
/// without libtandem-images.so.
Result<NamedArray> readFolder(const io::Argument &argument,
                              const artifact::Value &value);

} // namespace tandem::commands

#endif
