//===- CommandName.h - which command this process runs --------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_COMMANDNAME_H
#define TANDEM_TOOLS_COMMANDS_COMMANDNAME_H

#include <string_view>

namespace tandem::commands {

/// Says which command of the tool runs: `agree` (Ranks.h) fails unless all
/// ranks run the same one.
void beginCommand(std::string_view name);

} // namespace tandem::commands

#endif
