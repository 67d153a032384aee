//===- WriteText.h - a file of text, whole or not at all ------------------===//
#ifndef TANDEM_TOOLS_TANDEM_WRITETEXT_H
#define TANDEM_TOOLS_TANDEM_WRITETEXT_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::commands {

/// Writes the file, which replaces one of that name when it is whole.
Status writeText(const std::string &path, const std::string &text);

} // namespace tandem::commands

#endif
