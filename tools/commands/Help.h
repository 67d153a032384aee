//===- Help.h - what is made from tables of options -----------------------===//
//
// The same tables as text for a terminal, as pages of a manual, as
// docs/options.md and as completions of shells, so that none of them can lag
// behind what is parsed.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_HELP_H
#define TANDEM_TOOLS_COMMANDS_HELP_H

#include "tools/commands/Commands.h"

namespace tandem::commands {

/// Returns `text` in lines of at most `width` columns that begin with `indent`
/// spaces, the first one without. Spaces and line ends are alike.
std::string wrapped(std::string_view text, size_t indent, size_t width);

/// Returns how the option is written with its value: "--name=VALUE".
std::string spellingOf(const Option &option);
/// Returns its help, then range, default, and what it needs and excludes, as
/// sentences without an end, parted by semicolons.
std::string explanationOf(const OptionTable &table, const Option &option);

/// Returns the page that lists the commands and topics of a tool.
std::string overviewText(const Tool &tool);

/// Returns the manual page of the tool, or of one of its commands, for man(1).
std::string manPage(const Tool &tool);
std::string manPage(const Tool &tool, const Command &command);

/// Returns docs/options.md: all options of all commands.
std::string optionsPage(const Tool &tool);

/// Returns the completions for "bash", "zsh" or "fish"; empty for others.
std::string completionsFor(const Tool &tool, std::string_view shell);

/// Exit codes and what they mean; one a line.
std::string exitCodesText();

} // namespace tandem::commands

#endif
