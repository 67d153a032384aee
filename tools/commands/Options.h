//===- Options.h - a command's options, declared once ---------------------===//
//
// A command declares its options in a table: name, value, range, default, what
// each needs and excludes. The table parses the command line; help texts, man
// pages, completions and docs/options.md are made from it (Help.h,
// Completion.cpp). `--name=value` and `--name value` mean the same; `--` ends
// the options. Every problem of a command line is in one message.
//
// Where an option names another, a condition is "name" (it is given) or
// "name=value" (it is given with that value).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_OPTIONS_H
#define TANDEM_TOOLS_COMMANDS_OPTIONS_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// The words of a command line that follow the command's name.
using Words = std::span<const std::string_view>;

/// Fails if a value is wrong; the message names the option.
using ValueCheck = std::function<Status(std::string_view)>;

/// True if `name` ends in one of the suffixes of ".onnx|.mlir".
bool endsInOne(std::string_view name, std::string_view suffixes);

/// An option as it was declared. What is chained to its declaration says more
/// of it; texts must be literals.
class Option {
public:
  enum class Kind { Flag, Text, OptionalText, List, Integer, Number };

  /// What counts where it is not given, for help texts: "auto".
  Option &byDefault(std::string_view text);
  /// The values that it may have.
  Option &oneOf(std::initializer_list<std::string_view> values);
  /// There are other values beside those of `oneOf`, which `check` looks at.
  Option &orOthers();
  /// Returns more values for completions: made only where they are printed.
  Option &completes(std::vector<std::string> (*values)());
  /// Bounds of a number.
  Option &atLeast(double bound) { return low(bound, false); }
  Option &above(double bound) { return low(bound, true); }
  Option &atMost(double bound) { return high(bound, false); }
  Option &below(double bound) { return high(bound, true); }
  /// Looks at a value that is right otherwise.
  Option &check(ValueCheck check);
  /// A list of NAME=VALUE: each name once.
  Option &keyed();
  /// The command does not work without it.
  /// It must be given, unless the condition holds.
  Option &required(std::string_view unless = {});

  /// It has no effect, or makes no sense, unless the condition holds. `why` is
  /// a sentence without its end.
  Option &needs(std::string_view condition, std::string_view why = {});
  /// Another condition that does for what it needs, which was declared before.
  Option &orNeeds(std::string_view condition);
  /// It cannot be given where the condition holds; that holds of both.
  Option &excludes(std::string_view condition, std::string_view why = {});
  /// It has no effect where option `name` is given with other values than
  /// `value`.
  Option &onlyWith(std::string_view name, std::string_view value);
  /// It has an effect only where the first argument ends in one of `suffixes`
  /// (".onnx|.pt2"); `what` are such files ("models in ONNX").
  Option &onlyFor(std::string_view suffixes, std::string_view what);
  /// It has no effect where the first argument ends in one of them; `what` is
  /// such a file ("an artifact").
  Option &notFor(std::string_view suffixes, std::string_view what);
  /// Says whether its value fulfils the condition "name=wanted", where that is
  /// more than being equal.
  Option &matching(bool (*matches)(std::string_view value,
                                   std::string_view wanted));
  /// A value that is right, for the test of all pairs of options.
  Option &example(std::string_view value);

  struct Rule {
    enum class Kind { Needs, Excludes, OnlyWith, OnlyFor, NotFor };
    Kind kind;
    /// One; with `OnlyWith` name and value, with files suffix and what it is
    /// of.
    std::vector<std::string_view> conditions;
    std::string_view why;
  };

  Kind kind = Kind::Text;
  std::string_view name, value, help, group, fallback;
  bool folded = false; ///< the option is another command's, which explains it
  bool isRequired = false, isKeyed = false, given = false;
  bool hasOthers = false;          ///< `choices` are not all values
  std::string_view requiredUnless; ///< a condition, or nothing
  std::vector<std::string_view> choices, samples;
  std::vector<Rule> rules;
  std::vector<std::string> values; ///< that were given

  bool takesValue() const { return kind != Kind::Flag; }
  bool repeats() const { return kind == Kind::List; }
  /// Returns how it is written: "-o", "--output".
  std::string written() const;
  /// Returns what completions offer; empty: anything, or a file.
  std::vector<std::string> completions() const;
  /// Returns a number's bounds: "above 0"; empty if there are none.
  std::string boundsText() const;
  /// True if `value` is what a condition "name=wanted" asks for.
  bool matches(std::string_view value, std::string_view wanted) const;
  /// True if it is given, and with `wanted`, unless that is empty.
  bool fulfils(std::string_view wanted) const;

private:
  friend class OptionTable;

  Option &low(double bound, bool isOpen);
  Option &high(double bound, bool isOpen);
  /// Returns "a number above 0", "auto or no"; of an integer both bounds.
  std::string rangeText() const;
  /// Takes the value over, or fails with what is wrong with it.
  Status take(std::string_view text);
  /// Returns what was expected, if it is not of the kind or out of its range.
  std::optional<std::string> expected(std::string_view text) const;

  std::function<void(std::string_view)> set_;
  std::vector<ValueCheck> checks_;
  bool (*matches_)(std::string_view, std::string_view) = nullptr;
  std::vector<std::string> (*completes_)() = nullptr;
  std::optional<double> low_, high_;
  int64_t least_ = INT64_MIN, most_ = INT64_MAX; ///< of an integer
  bool lowIsOpen_ = false, highIsOpen_ = false;
};

class OptionTable {
public:
  struct Positional {
    std::string_view name, help;
    std::string *target;
    bool isRequired = true;
    std::vector<std::string_view> choices; ///< what it may be; empty: anything
    /// Gets all words, of which `target` is the first; null: there is but one.
    std::vector<std::string> *all = nullptr;
  };

  /// `usage` is the line after the tool's name ("run X.tdm [options]").
  OptionTable(std::string_view usage, std::string_view description)
      : usage_(usage), description_(description) {}

  /// Each declares an option or argument; its target is set by `parse` and must
  /// outlive it. Lists may be given many times, everything else once. The
  /// option stays where it is until the next one is declared.
  Positional &positional(std::string_view name, std::string &target,
                         std::string_view help);
  /// The last argument, of one word or more.
  void positionals(std::string_view name, std::string &first,
                   std::vector<std::string> &all, std::string_view help) {
    positional(name, first, help).all = &all;
  }
  Option &flag(std::string_view name, bool &target, std::string_view help);
  Option &text(std::string_view name, std::string_view value,
               std::string &target, std::string_view help);
  /// `--name` or `--name=value`; sets `given`, and the target if there is a
  /// value. The next word is never the value.
  Option &optionalText(std::string_view name, std::string_view value,
                       bool &given, std::string &target, std::string_view help);
  Option &list(std::string_view name, std::string_view value,
               std::vector<std::string> &target, std::string_view help);
  Option &integer(std::string_view name, std::string_view value,
                  std::optional<int64_t> &target, int64_t low, int64_t high,
                  std::string_view help);
  Option &number(std::string_view name, std::string_view value,
                 std::optional<double> &target, std::string_view help);

  /// Options that are declared from now on stand under `heading` in the help.
  void group(std::string_view heading);
  /// From now on options are those of command `command`, to whose help this
  /// one refers for them; groups among them do not count.
  void groupOf(std::string_view command);
  /// Exactly one of the options is given; or at least one.
  void exactlyOneOf(std::initializer_list<std::string_view> names);
  void atLeastOneOf(std::initializer_list<std::string_view> names);
  /// What is looked at when all else is right.
  void finally(std::function<Status()> check) { finally_ = std::move(check); }

  /// Sets the targets. Fails with Usage.
  Status parse(Words words);

  /// True if `parse` met --help; nothing else of the line was looked at then.
  bool helpAsked() const { return helpAsked_; }

  /// Returns the help text; `tool` is the program's name.
  std::string help(std::string_view tool) const;

  struct Choice {
    std::vector<std::string_view> names;
    bool isExclusive;
  };

  // For what is made from the table:
  std::string_view usage() const { return usage_; }
  std::string_view description() const { return description_; }
  const std::vector<Positional> &positionals() const { return positionals_; }
  std::vector<Option> &options() { return options_; }
  const std::vector<Option> &options() const { return options_; }
  const std::vector<Choice> &choices() const { return choices_; }
  const Option *find(std::string_view name) const;
  /// Returns "--name" or "--name=value".
  std::string writtenCondition(std::string_view condition) const;

private:
  struct Parser;
  Option &add(Option::Kind kind, std::string_view name, std::string_view value,
              std::string_view help);
  /// Adds what the options that were given say of each other (OptionRules.cpp).
  void applyRules(std::vector<std::string> &problems) const;
  void applyRule(const Option &option, const Option::Rule &rule,
                 std::vector<std::string> &problems) const;
  void applyChoice(const Choice &choice,
                   std::vector<std::string> &problems) const;
  bool holds(std::string_view condition) const;

  std::string_view usage_, description_, group_;
  bool folded_ = false;
  std::vector<Option> options_;
  std::vector<Positional> positionals_;
  std::vector<Choice> choices_;
  std::function<Status()> finally_;
  bool helpAsked_ = false;
};

} // namespace tandem::commands

#endif
