//===- CompilerCommands.h - the commands that need the compiler -----------===//
#ifndef TANDEM_TOOLS_TANDEM_COMPILERCOMMANDS_H
#define TANDEM_TOOLS_TANDEM_COMPILERCOMMANDS_H

#include "runtime/cli/Options.h"

namespace tandem::commands {

Status compile(std::string_view tool, Words words);
Status check(std::string_view tool, Words words);
Status inspect(std::string_view tool, Words words);

} // namespace tandem::commands

#endif
