//===- MemoryLimit.h - the option --memory-limit --------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_MEMORYLIMIT_H
#define TANDEM_TOOLS_COMMANDS_MEMORYLIMIT_H

#include "tools/commands/Options.h"

namespace tandem::commands {

/// Declares the option of commands that run on a device.
Option &declareMemoryLimit(OptionTable &options, std::string &limit);

} // namespace tandem::commands

#endif
