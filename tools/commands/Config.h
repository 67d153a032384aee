//===- Config.h - options from a file, and into one -----------------------===//
//
// A file in TOML with a key for each option: texts, numbers, `true` and `false`
// for flags, and lists for options that may be given many times. A table
// `[name]` gives a list of NAME=VALUE, one a line:
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

/// A word of the command line that a file says in its place.
struct ConfigWord {
  std::string text;  ///< "--name=value"
  std::string place; ///< of the value: FILE:LINE:COLUMN
};

/// Returns the words of the file that `words` give as --config;
/// none if they give none. Options that `words` have themselves, or of which
/// they have one that it excludes, are left out. Fails with Usage; each problem
/// is at FILE:LINE:COLUMN.
Result<std::vector<ConfigWord>> configWords(const OptionTable &table,
                                            Words words);

/// The same of a file's text; `path` is for messages.
Result<std::vector<ConfigWord>> wordsOfConfig(const OptionTable &table,
                                              Words words,
                                              const std::string &path,
                                              std::string_view text);

/// Returns a file for --config with the options that a parsed `table` was
/// given, by whatever way, but --config itself. Empty where no such file can
/// say them (a path that is not UTF-8).
std::string configOf(const OptionTable &table);

} // namespace tandem::commands

#endif
