//===- Options.h - a command's options, declared once ---------------------===//
//
// A command declares its options in a table; the table parses the command line
// and writes the help text. `--name=value` and `--name value` mean the same;
// `--` ends the options. Every problem of a command line is in one message.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CLI_OPTIONS_H
#define TANDEM_RUNTIME_CLI_OPTIONS_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// The words of a command line that follow the command's name.
using Words = std::span<const std::string_view>;

class OptionTable {
public:
  /// `usage` is the line after the tool's name ("run X.tdm [options]").
  OptionTable(std::string_view usage, std::string_view description)
      : usage_(usage), description_(description) {}

  /// Each declares an option or argument; its target is set by `parse` and must
  /// outlive it. Lists may be given many times, everything else once.
  void positional(std::string_view name, std::string &target,
                  std::string_view help);
  void flag(std::string_view name, bool &target, std::string_view help);
  void text(std::string_view name, std::string_view value, std::string &target,
            std::string_view help);
  /// `--name` or `--name=value`; sets `given`, and the target if there is a
  /// value. The next word is never the value.
  void optionalText(std::string_view name, std::string_view value, bool &given,
                    std::string &target, std::string_view help);
  void list(std::string_view name, std::string_view value,
            std::vector<std::string> &target, std::string_view help);
  void integer(std::string_view name, std::string_view value,
               std::optional<int64_t> &target, int64_t low, int64_t high,
               std::string_view help);
  void number(std::string_view name, std::string_view value,
              std::optional<double> &target, std::string_view help);

  /// Sets the targets. Fails with Usage.
  Status parse(Words words);

  /// True if `parse` met --help; nothing else of the line was looked at then.
  bool helpAsked() const { return helpAsked_; }

  /// Returns the help text; `tool` is the program's name.
  std::string help(std::string_view tool) const;

private:
  struct Option {
    std::string_view name, value, help;
    bool repeats;
    /// Takes the value over; returns what was expected if it is wrong.
    std::function<std::optional<std::string>(std::string_view)> take;
    bool given = false;
    bool needsValue = true; ///< if it takes one
  };
  struct Positional {
    std::string_view name, help;
    std::string *target;
  };

  std::string_view usage_, description_;
  std::vector<Option> options_;
  std::vector<Positional> positionals_;
  bool helpAsked_ = false;
};

} // namespace tandem::commands

#endif
