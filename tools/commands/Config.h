//===- Config.h - options from a file -------------------------------------===//
//
// A subset of TOML: `name = value` for each option, with texts, numbers, `true`
// and `false` for flags, and lists for options that may be given many times. A
// section `[name]` gives a list of NAME=VALUE, one a line:
//
//   epochs = 3
//   no-shuffle = true
//   [data]
//   x = "@x.npy"
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_CONFIG_H
#define TANDEM_TOOLS_COMMANDS_CONFIG_H

#include "tools/commands/Options.h"

namespace tandem::commands {

/// Returns the words "--name=value" of the file that `words` give as --config;
/// none if they give none. Options that `words` have themselves, or of which
/// they have one that it excludes, are left out. Fails with Usage, with the
/// file's line.
Result<std::vector<std::string>> configWords(const OptionTable &table,
                                             Words words);

} // namespace tandem::commands

#endif
