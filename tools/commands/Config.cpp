//===- Config.cpp - options from a file, and into one ---------------------===//
#include "tools/commands/Config.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/artifact/Text.h"
#include "runtime/io/Argument.h"
#include "runtime/io/Array.h"
#include "runtime/io/File.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

namespace tandem::commands {
namespace {

constexpr size_t kMost = size_t(1) << 20; ///< bytes of a file
constexpr size_t kMostDots = 1000;        ///< in one line of it
/// A line in front of it says whose options they are.
constexpr size_t kMostWritten = kMost - 4096;

/// True if the words have the option of the condition NAME or NAME=VALUE, as
/// one word or as two.
bool isGiven(const OptionTable &table, Words words,
             std::string_view condition) {
  size_t equals = std::min(condition.find('='), condition.size());
  std::string_view name = condition.substr(0, equals);
  std::string_view wanted =
      condition.substr(std::min(equals + 1, condition.size()));
  const Option *option = table.find(name);
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    std::string_view word = words[i];
    if (!word.starts_with("--") || !word.substr(2).starts_with(name))
      continue;
    word.remove_prefix(2 + name.size());
    if (!word.empty() && word.front() != '=')
      continue;
    if (wanted.empty())
      return true;
    bool isNext = word.empty() && option && option->takesValue() &&
                  option->kind != Option::Kind::OptionalText &&
                  i + 1 < words.size();
    std::string_view value = isNext         ? words[i + 1]
                             : word.empty() ? word
                                            : word.substr(1);
    if (option ? option->matches(value, wanted) : value == wanted)
      return true;
  }
  return false;
}

/// True if the command line says the same, or what excludes it.
bool isOverridden(const OptionTable &table, Words words,
                  std::string_view name) {
  if (isGiven(table, words, name))
    return true;
  for (const OptionTable::Choice &choice : table.choices())
    if (choice.isExclusive &&
        std::ranges::find(choice.names, name) != choice.names.end())
      for (std::string_view other : choice.names)
        if (isGiven(table, words, other))
          return true;
  for (const Option &option : table.options())
    for (const Option::Rule &rule : option.rules) {
      if (rule.kind != Option::Rule::Kind::Excludes)
        continue;
      std::string_view other = rule.conditions.front();
      if ((option.name == name && isGiven(table, words, other)) ||
          (other == name && isGiven(table, words, option.name)))
        return true;
    }
  return false;
}

/// The value of a key as the command line would have it; nothing for a list, a
/// table or a date.
std::optional<std::string> textOf(const toml::node &node) {
  if (auto text = node.value_exact<std::string>())
    return text;
  if (auto flag = node.value_exact<bool>())
    return *flag ? "true" : "false";
  if (auto integer = node.value_exact<int64_t>())
    return std::to_string(*integer);
  if (auto number = node.value_exact<double>())
    return numberText(*number);
  return std::nullopt;
}

/// The keys of a table in the order of the file.
std::vector<std::pair<std::string, const toml::node *>>
keysOf(const toml::table &table) {
  std::vector<std::pair<std::string, const toml::node *>> keys;
  for (auto &&[key, node] : table)
    keys.emplace_back(std::string(key.str()), &node);
  auto place = [](const auto &entry) {
    const toml::source_position &begin = entry.second->source().begin;
    return std::tuple(begin.line, begin.column, std::string_view(entry.first));
  };
  std::ranges::sort(keys, {}, place);
  return keys;
}

class Reader {
public:
  Reader(const OptionTable &table, Words words, const std::string &path)
      : table_(table), words_(words), path_(path) {}

  void read(const toml::table &file) {
    for (const auto &[key, node] : keysOf(file)) {
      const Option *option = key == "config" ? nullptr : table_.find(key);
      if (!option)
        refuse(key, *node);
      else if (isOverridden(table_, words_, key))
        continue;
      else if (const toml::table *values = node->as_table())
        readTable(*option, *values);
      else if (const toml::array *values = node->as_array())
        readList(*option, *values);
      else
        readValue(*option, *node);
    }
  }

  void wrong(const toml::source_region &at, const std::string &what) {
    problems_ += (problems_.empty() ? "" : "; ") + placeOf(at) + ": " + what;
  }

  Result<std::vector<ConfigWord>> take() {
    if (!problems_.empty())
      return Status::usage(problems_);
    return std::move(all_);
  }

private:
  std::string placeOf(const toml::source_region &at) const {
    return path_ + ":" + std::to_string(at.begin.line) + ":" +
           std::to_string(at.begin.column);
  }

  void refuse(const std::string &key, const toml::node &node) {
    std::vector<std::string_view> known;
    for (const Option &option : table_.options())
      if (option.name != "config")
        known.push_back(option.name);
    wrong(node.source(), "there is no option " + io::inQuotes(key) + " here" +
                             didYouMean(key, known));
  }

  void readTable(const Option &option, const toml::table &values) {
    std::string name(option.name);
    if (!option.isKeyed) {
      wrong(values.source(), "'" + name + "' is no list of NAME=VALUE");
      return;
    }
    for (const auto &[key, node] : keysOf(values))
      if (auto text = textOf(*node))
        add(option, "=" + key + "=" + *text, *node);
      else
        wrong(node->source(),
              "expected a text or a number for " + io::inQuotes(key));
  }

  void readList(const Option &option, const toml::array &values) {
    std::string name(option.name);
    if (!option.repeats()) {
      wrong(values.source(), "'" + name + "' has one value, and is no list");
      return;
    }
    for (const toml::node &node : values)
      if (auto text = textOf(node))
        add(option, "=" + *text, node);
      else
        wrong(node.source(), "expected texts or numbers in '" + name + "'");
  }

  void readValue(const Option &option, const toml::node &node) {
    std::string name(option.name);
    auto flag = node.value_exact<bool>();
    auto text = textOf(node);
    bool isFlag = option.kind == Option::Kind::Flag;
    if (!text || (isFlag && !flag))
      wrong(node.source(), (isFlag ? "expected true or false for '"
                                   : "expected a text or a number for '") +
                               name + "'");
    else if (flag && (isFlag || option.kind == Option::Kind::OptionalText)) {
      if (*flag)
        add(option, "", node);
    } else if (flag)
      wrong(node.source(), "'" + name + "' is no flag: expected a text or a " +
                               "number but got " + *text);
    else
      add(option, "=" + *text, node);
  }

  /// `value` begins with "=", or is empty.
  void add(const Option &option, const std::string &value,
           const toml::node &node) {
    // Paths end there.
    if (value.find('\0') != value.npos)
      wrong(node.source(), "expected a text without NUL");
    all_.push_back(
        {"--" + std::string(option.name) + value, placeOf(node.source())});
  }

  const OptionTable &table_;
  Words words_;
  std::string path_, problems_;
  std::vector<ConfigWord> all_;
};

/// Returns the first line with more dots than options need, if there is one:
/// each may be a table in a table, which are made and freed level by level.
std::optional<size_t> lineOfDots(std::string_view text) {
  size_t line = 1, dots = 0;
  for (char c : text) {
    line += c == '\n';
    dots = c == '\n' ? 0 : dots + (c == '.');
    if (dots > kMostDots)
      return line;
  }
  return std::nullopt;
}

/// What a table was given, as a file that has it.
class Writer {
public:
  Writer(const OptionTable &table, bool spellsDots)
      : table_(table), spellsDots_(spellsDots) {}

  std::string text() const {
    std::string text, tables;
    for (const Option &option : table_.options()) {
      if (!option.given || option.name == "config")
        continue;
      if (option.isKeyed && std::ranges::all_of(option.values, hasName))
        tables += tableOf(option);
      else
        text += std::string(option.name) + " = " + valueOf(option) + "\n";
    }
    return text + tables;
  }

private:
  static bool hasName(const std::string &value) {
    return io::endOfName(value) < value.size();
  }
  std::string quoted(std::string_view text) const;
  std::string key(std::string_view text) const;
  std::string number(const Option &option, const std::string &value) const;
  std::string tableOf(const Option &option) const;
  std::string valueOf(const Option &option) const;

  const OptionTable &table_;
  bool spellsDots_; ///< as \u002e: a line with more of them is not read
};

std::string Writer::quoted(std::string_view text) const {
  std::string all = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      all += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f || (c == '.' && spellsDots_)) {
      constexpr char digits[] = "0123456789abcdef";
      all += std::string("\\u00") + digits[byte >> 4] + digits[byte & 15];
    } else
      all += c;
  }
  return all + "\"";
}

std::string Writer::key(std::string_view text) const {
  bool isBare = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c == '-' || c == '_' || (c < 0x80 && std::isalnum(c));
  });
  return isBare ? std::string(text) : quoted(text);
}

/// A number as TOML spells it, or a text.
std::string Writer::number(const Option &option,
                           const std::string &value) const {
  bool isNumber = option.kind == Option::Kind::Integer ||
                  option.kind == Option::Kind::Number;
  bool isDecimal =
      !value.empty() && value.size() < 18 &&
      std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; }) &&
      (value == "0" || value[0] != '0');
  if (isNumber && isDecimal)
    return value;
  if (option.kind == Option::Kind::Number) {
    double number = std::strtod(value.c_str(), nullptr);
    if (std::isfinite(number))
      return numberText(number);
  }
  return quoted(value);
}

std::string Writer::tableOf(const Option &option) const {
  std::string text = "\n[" + std::string(option.name) + "]\n";
  for (const std::string &value : option.values) {
    size_t end = io::endOfName(value);
    text += key(std::string_view(value).substr(0, end)) + " = " +
            quoted(std::string_view(value).substr(end + 1)) + "\n";
  }
  return text;
}

std::string Writer::valueOf(const Option &option) const {
  if (!option.takesValue())
    return "true";
  if (option.repeats()) {
    std::string text;
    for (const std::string &value : option.values)
      text += (text.empty() ? "" : ", ") + quoted(value);
    return "[" + text + "]";
  }
  const std::string &value = option.values.back();
  bool isAlone = option.kind == Option::Kind::OptionalText && value.empty();
  return isAlone ? "true" : number(option, value);
}

} // namespace

Result<std::vector<ConfigWord>> wordsOfConfig(const OptionTable &table,
                                              Words words,
                                              const std::string &path,
                                              std::string_view text) {
  if (auto line = lineOfDots(text))
    return Status::usage(artifact::printable(path) + ":" +
                         std::to_string(*line) + ":1: expected at most " +
                         std::to_string(kMostDots) + " dots in a line");
  Reader reader(table, words, artifact::printable(path));
  toml::parse_result file = toml::parse(text);
  if (file)
    reader.read(file.table());
  else
    reader.wrong(file.error().source(),
                 artifact::printable(file.error().description()));
  return reader.take();
}

Result<std::vector<ConfigWord>> configWords(const OptionTable &table,
                                            Words words) {
  std::string path;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i)
    if (words[i].starts_with("--config="))
      path = words[i].substr(9);
    else if (words[i] == "--config" && i + 1 < words.size())
      path = words[i + 1];
  if (path.empty())
    return std::vector<ConfigWord>();
  // Also from a pipe.
  auto bytes = io::readBegin(path, kMost);
  if (!bytes)
    return std::move(bytes).status().in("--config");
  if (bytes->size() == kMost)
    return Status::usage(
        "--config: expected a file of less than 1 MiB but got " +
        io::inQuotes(path));
  return wordsOfConfig(table, words, path, io::asText(*bytes));
}

std::string configOf(const OptionTable &table) {
  std::string text = Writer(table, /*spellsDots=*/false).text();
  if (lineOfDots(text))
    text = Writer(table, /*spellsDots=*/true).text();
  bool isRead =
      text.size() < kMostWritten && toml::parse(std::string_view(text));
  return isRead ? text : "";
}

} // namespace tandem::commands
