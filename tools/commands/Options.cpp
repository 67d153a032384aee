//===- Options.cpp - a command's options: declaring and parsing -----------===//
//
// Not getopt_long: it prints by itself, keeps global state, accepts cut-off
// names, and stops at the first problem.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Options.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Argument.h"
#include "runtime/io/Array.h"
#include "tools/commands/Config.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tandem::commands {
namespace {

/// Integers that may be as great have no bound that anybody meets: help does
/// not mention it.
constexpr int64_t kUnbounded = int64_t(1) << 53;

template <typename T> std::optional<T> parseWhole(std::string_view text) {
  T value{};
  const char *end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return std::nullopt;
  return value;
}

/// Returns "a, b or c".
std::string orList(const std::vector<std::string_view> &texts) {
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i)
    text += (i == 0                 ? ""
             : i + 1 < texts.size() ? ", "
                                    : " or ") +
            std::string(texts[i]);
  return text;
}

} // namespace

//===----------------------------------------------------------------------===//
// Option
//===----------------------------------------------------------------------===//

Option &Option::byDefault(std::string_view text) {
  fallback = text;
  return *this;
}

Option &Option::oneOf(std::initializer_list<std::string_view> list) {
  choices.assign(list);
  return *this;
}

Option &Option::orOthers() {
  hasOthers = true;
  return *this;
}

Option &Option::completes(std::vector<std::string> (*values)()) {
  completes_ = values;
  return *this;
}

std::vector<std::string> Option::completions() const {
  std::vector<std::string> all(choices.begin(), choices.end());
  if (completes_)
    for (std::string &value : completes_())
      if (std::find(all.begin(), all.end(), value) == all.end())
        all.push_back(std::move(value));
  return all;
}

Option &Option::low(double bound, bool isOpen) {
  low_ = bound;
  lowIsOpen_ = isOpen;
  return *this;
}

Option &Option::high(double bound, bool isOpen) {
  high_ = bound;
  highIsOpen_ = isOpen;
  return *this;
}

Option &Option::check(ValueCheck check) {
  checks_.push_back(std::move(check));
  return *this;
}

Option &Option::keyed() {
  isKeyed = true;
  return *this;
}

Option &Option::required(std::string_view unless) {
  requiredUnless = unless;
  isRequired = true;
  return *this;
}

Option &Option::matching(bool (*matches)(std::string_view, std::string_view)) {
  matches_ = matches;
  return *this;
}

Option &Option::example(std::string_view text) {
  samples.push_back(text);
  return *this;
}

std::string Option::written() const {
  return (name.size() == 1 ? "-" : "--") + std::string(name);
}

std::string Option::boundsText() const {
  if (kind == Kind::Integer) {
    if (most_ >= kUnbounded)
      return least_ == INT64_MIN ? "" : "of at least " + std::to_string(least_);
    return "from " + std::to_string(least_) + " to " + std::to_string(most_);
  }
  if (low_ && high_ && !lowIsOpen_ && !highIsOpen_)
    return "from " + numberText(*low_) + " to " + numberText(*high_);
  std::string text;
  if (low_)
    text += (lowIsOpen_ ? "above " : "of at least ") + numberText(*low_);
  if (high_)
    text += (low_ ? " and " : "") +
            std::string(highIsOpen_ ? "below " : "at most ") +
            numberText(*high_);
  return text;
}

std::string Option::rangeText() const {
  if (!choices.empty())
    return orList(choices);
  // A value may be wrong for the bound that help does not mention.
  if (kind == Kind::Integer)
    return "an integer from " + std::to_string(least_) + " to " +
           std::to_string(most_);
  std::string bounds = boundsText();
  return "a number" + (bounds.empty() ? "" : " " + bounds);
}

std::optional<std::string> Option::expected(std::string_view text) const {
  bool isRight = true;
  if (kind == Kind::Integer) {
    auto number = parseWhole<int64_t>(text);
    isRight = number && *number >= least_ && *number <= most_;
  } else if (kind == Kind::Number) {
    auto number = parseWhole<double>(text);
    isRight = number && std::isfinite(*number) &&
              !(low_ && (lowIsOpen_ ? *number <= *low_ : *number < *low_)) &&
              !(high_ && (highIsOpen_ ? *number >= *high_ : *number > *high_));
  } else if (!choices.empty() && !hasOthers) {
    isRight = std::find(choices.begin(), choices.end(), text) != choices.end();
  } else if (kind == Kind::Text && text.empty()) {
    return "a value";
  }
  return isRight ? std::nullopt : std::optional(rangeText());
}

Status Option::take(std::string_view text) {
  if (kind == Kind::OptionalText && text.empty()) {
    set_(text); // without a value
    return Status::success();
  }
  if (auto wanted = expected(text))
    return Status::usage("option '" + written() + "' expected " + *wanted +
                         " but got " + io::inQuotes(text) +
                         didYouMean(text, choices));
  for (const ValueCheck &check : checks_)
    if (Status status = check(text); !status)
      return status;
  set_(text);
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Declaring
//===----------------------------------------------------------------------===//

Option &OptionTable::add(Option::Kind kind, std::string_view name,
                         std::string_view value, std::string_view help) {
  Option &option = options_.emplace_back();
  option.kind = kind;
  option.name = name;
  option.value = value;
  option.help = help;
  option.group = group_;
  option.folded = folded_;
  return option;
}

OptionTable::Positional &OptionTable::positional(std::string_view name,
                                                 std::string &target,
                                                 std::string_view help) {
  return positionals_.emplace_back(
      Positional{name, help, &target, true, {}, nullptr});
}

Option &OptionTable::flag(std::string_view name, bool &target,
                          std::string_view help) {
  Option &option = add(Option::Kind::Flag, name, "", help);
  option.set_ = [&target](std::string_view) { target = true; };
  return option;
}

Option &OptionTable::text(std::string_view name, std::string_view value,
                          std::string &target, std::string_view help) {
  Option &option = add(Option::Kind::Text, name, value, help);
  option.set_ = [&target](std::string_view text) { target = text; };
  return option;
}

Option &OptionTable::optionalText(std::string_view name, std::string_view value,
                                  bool &given, std::string &target,
                                  std::string_view help) {
  Option &option = add(Option::Kind::OptionalText, name, value, help);
  option.set_ = [&given, &target](std::string_view text) {
    given = true;
    target = text;
  };
  return option;
}

Option &OptionTable::list(std::string_view name, std::string_view value,
                          std::vector<std::string> &target,
                          std::string_view help) {
  Option &option = add(Option::Kind::List, name, value, help);
  option.set_ = [&target](std::string_view text) { target.emplace_back(text); };
  return option;
}

Option &OptionTable::integer(std::string_view name, std::string_view value,
                             std::optional<int64_t> &target, int64_t low,
                             int64_t high, std::string_view help) {
  Option &option = add(Option::Kind::Integer, name, value, help);
  option.least_ = low;
  option.most_ = high;
  option.set_ = [&target](std::string_view text) {
    target = parseWhole<int64_t>(text);
  };
  return option;
}

Option &OptionTable::number(std::string_view name, std::string_view value,
                            std::optional<double> &target,
                            std::string_view help) {
  Option &option = add(Option::Kind::Number, name, value, help);
  option.set_ = [&target](std::string_view text) {
    target = parseWhole<double>(text);
  };
  return option;
}

void OptionTable::group(std::string_view heading) {
  if (!folded_)
    group_ = heading;
}

void OptionTable::groupOf(std::string_view command) {
  group_ = command;
  folded_ = true;
}

const Option *OptionTable::find(std::string_view name) const {
  auto found =
      std::find_if(options_.begin(), options_.end(),
                   [&](const Option &option) { return option.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// One command line, and everything that is wrong with it.
struct OptionTable::Parser {
  OptionTable &table;
  Words words;
  const std::vector<ConfigWord> &ofFile; ///< the first of `words`
  std::vector<std::string> problems;
  size_t position = 0; ///< the next positional argument's

  void takeArgument(std::string_view word) {
    if (position >= table.positionals_.size()) {
      problems.push_back("unexpected argument " + io::inQuotes(word));
      return;
    }
    const Positional &argument = table.positionals_[position];
    bool isFirst = !argument.all || argument.all->empty();
    position += argument.all == nullptr;
    const auto &choices = argument.choices;
    if (word.empty() ||
        (!choices.empty() &&
         std::find(choices.begin(), choices.end(), word) == choices.end()))
      problems.push_back("expected " + std::string(argument.name) +
                         (choices.empty() ? "" : " to be " + orList(choices)) +
                         " but got " + io::inQuotes(word) +
                         didYouMean(word, choices));
    else if (isFirst)
      *argument.target = word;
    if (argument.all)
      argument.all->emplace_back(word);
  }

  void refuse(std::string_view name) {
    std::vector<std::string> spellings = {"--help"};
    for (const Option &option : table.options_)
      spellings.push_back(option.written());
    std::vector<std::string_view> known(spellings.begin(), spellings.end());
    problems.push_back("unknown option " + io::inQuotes(name) +
                       didYouMean(name, known));
  }

  /// "--save --force": the value of --save is missing. Who means such a value
  /// writes --save=--force.
  bool isOption(std::string_view word) const {
    if (word.starts_with("--"))
      return true;
    std::string_view name = word.substr(0, word.find('='));
    return std::any_of(
        table.options_.begin(), table.options_.end(),
        [&](const Option &one) { return name == one.written(); });
  }

  /// Adds what is wrong with word `i`, and where that is.
  void wrong(size_t i, const std::string &what) {
    problems.push_back(
        (i < ofFile.size() ? ofFile[i].place + ": " : std::string()) + what);
  }

  /// Takes the option in word `i`; returns the last word that belongs to it.
  size_t takeOption(size_t i) {
    size_t equals = words[i].find('=');
    std::string_view name = words[i].substr(0, equals);
    auto option =
        std::find_if(table.options_.begin(), table.options_.end(),
                     [&](const Option &one) { return name == one.written(); });
    if (option == table.options_.end()) {
      refuse(name);
      return i;
    }
    std::string quoted = "option " + io::inQuotes(name);
    size_t first = i;
    if (option->given && !option->repeats())
      wrong(first, quoted + " is given twice");
    option->given = true;
    std::string_view value;
    if (!option->takesValue()) {
      if (equals != std::string_view::npos)
        wrong(first, quoted + " takes no value");
    } else if (equals != std::string_view::npos) {
      value = words[i].substr(equals + 1);
    } else if (option->kind == Option::Kind::OptionalText) {
      // Without one.
    } else if (i + 1 < words.size() && !isOption(words[i + 1])) {
      value = words[++i];
    } else {
      wrong(first,
            quoted + " needs a value (" + std::string(option->value) + ")");
      return i;
    }
    if (Status status = option->take(value); !status)
      wrong(first, status.message());
    takeKey(*option, first, value);
    option->values.emplace_back(value);
    return i;
  }

  /// Refuses the key of `value`, of word `i`, if it is there already.
  void takeKey(const Option &option, size_t i, std::string_view value) {
    std::string_view key = value.substr(0, io::endOfName(value));
    if (!option.isKeyed || key.size() == value.size())
      return;
    for (const std::string &other : option.values)
      if (std::string_view(other).substr(0, io::endOfName(other)) == key)
        wrong(i, "option " + io::inQuotes(option.written()) + " gives " +
                     io::inQuotes(key) + " twice");
  }

  void run() {
    bool onlyArguments = false;
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view word = words[i];
      if (!onlyArguments && (word == "--help" || word == "-h")) {
        table.helpAsked_ = true;
        return;
      }
      if (!onlyArguments && word == "--")
        onlyArguments = true;
      else if (onlyArguments || !word.starts_with('-') || word == "-")
        takeArgument(word);
      else
        i = takeOption(i);
    }
    for (size_t i = position; i < table.positionals_.size(); ++i)
      if (const Positional &argument = table.positionals_[i];
          argument.isRequired && (!argument.all || argument.all->empty()))
        problems.push_back("missing argument " +
                           std::string(table.positionals_[i].name));
    table.applyRules(problems);
  }
};

Status OptionTable::parse(Words words) {
  std::vector<ConfigWord> ofFile;
  std::vector<std::string_view> all;
  if (find("config")) {
    auto found = configWords(*this, words);
    if (!found)
      return std::move(found).status();
    ofFile = *std::move(found);
    for (const ConfigWord &word : ofFile)
      all.push_back(word.text);
    all.insert(all.end(), words.begin(), words.end());
    words = all;
  }
  Parser parser{*this, words, ofFile, {}};
  parser.run();
  if (helpAsked_)
    return Status::success();
  if (parser.problems.empty())
    return finally_ ? finally_() : Status::success();
  std::string text;
  for (const std::string &problem : parser.problems)
    text += (text.empty() ? "" : "; ") + problem;
  return Status::usage(text);
}

} // namespace tandem::commands
