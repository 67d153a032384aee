//===- FlagParts.h - what rows of options to compile by are made of -------===//
#ifndef TANDEM_TOOLS_TANDEM_FLAGPARTS_H
#define TANDEM_TOOLS_TANDEM_FLAGPARTS_H

#include "tools/tandem/CompileFlags.h"

#include "llvm/ADT/StringRef.h"

namespace tandem::commands {

/// The option decides what `phase` does: it has no effect if an earlier one is
/// the last.
Option &actsIn(const OptionTable &table, Option &option, llvm::StringRef phase);

/// A check of a regular expression that option `name` is given.
ValueCheck checkRegex(const char *name);

/// A check of what option `name` is given, by a parser that returns a Result.
template <typename Parse>
ValueCheck checkParsed(const char *name, Parse parse) {
  return [name, parse](std::string_view text) {
    return parse(std::string(text)).status().in(name);
  };
}

/// A check of what option `name` is given, by the parser of that.
template <typename Parse> ValueCheck checkSpec(const char *name, Parse parse) {
  return [name, parse](std::string_view text) {
    std::string error;
    return parse(text, error) ? Status::success()
                              : Status::usage(std::string(name) + ": " + error);
  };
}

/// The options of gradients and of the update.
void declareTraining(CompileFlags &flags, OptionTable &table);

} // namespace tandem::commands

#endif
