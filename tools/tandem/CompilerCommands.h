//===- CompilerCommands.h - the commands that need the compiler -----------===//
#ifndef TANDEM_TOOLS_TANDEM_COMPILERCOMMANDS_H
#define TANDEM_TOOLS_TANDEM_COMPILERCOMMANDS_H

#include "tools/commands/Commands.h"

namespace tandem::commands {

Command bugreportCommand();
Command checkpointCommand();
Command compileCommand();
Command checkCommand();
Command diffCommand();
Command explainCommand();
Command inspectCommand();
Command keysCommand();
Command linkCommand();
Command profileCommand();
Command reduceCommand();
Command signCommand();
Command simulateCommand();

/// Adds compiler, targets and assemblers of PTX to doctor's findings.
void checkCompiler(std::vector<Finding> &findings);

/// Returns the pages of help about what the compiler takes.
std::span<const Topic> compilerTopics();

} // namespace tandem::commands

#endif
