//===- Config.cpp - options from a file -----------------------------------===//
#include "tools/commands/Config.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Array.h"
#include "runtime/io/File.h"

#include <algorithm>

namespace tandem::commands {
namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr size_t kMost = size_t(1) << 20; ///< bytes of a file

/// The file's text, from its begin to its end.
class Reader {
public:
  Reader(std::string path, std::string_view text)
      : path_(std::move(path)), text_(text) {}

  bool atEnd() const { return text_.empty(); }
  bool atLineEnd() const { return text_.empty() || text_[0] == '\n'; }
  /// Skips spaces and comments; with `lines`, ends of lines as well.
  void skip(bool lines) {
    while (!text_.empty()) {
      if (text_[0] == '#')
        text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
      else if (kSpace.find(text_[0]) != kSpace.npos ||
               (lines && text_[0] == '\n'))
        take();
      else
        return;
    }
  }
  bool takes(char c) {
    if (text_.empty() || text_[0] != c)
      return false;
    take();
    return true;
  }
  /// What is neither quoted nor a separator: a name, a number.
  std::string bare() {
    size_t end = std::min(text_.find_first_of(" \t\r\n=,#[]\"'"), text_.size());
    std::string word(text_.substr(0, end));
    text_.remove_prefix(end);
    return word;
  }
  bool isQuoted() const {
    return !text_.empty() && (text_[0] == '"' || text_[0] == '\'');
  }
  Result<std::string> quoted() {
    char quote = text_[0];
    take();
    std::string word;
    while (!atLineEnd() && text_[0] != quote) {
      char c = text_[0];
      take();
      if (quote == '"' && c == '\\' && !atLineEnd()) {
        c = text_[0];
        take();
        if (c == 'n' || c == 't')
          c = c == 'n' ? '\n' : '\t';
        else if (c != '"' && c != '\\')
          return wrong("expected \\n, \\t, \\\" or \\\\ in a text");
      }
      word += c;
    }
    if (!takes(quote))
      return wrong("expected the end of a text");
    return word;
  }
  Status wrong(const std::string &what) const {
    return Status::usage(path_ + ":" + std::to_string(line_) + ": " + what);
  }

private:
  void take() {
    line_ += text_[0] == '\n';
    text_.remove_prefix(1);
  }

  std::string path_;
  std::string_view text_;
  int64_t line_ = 1;
};

/// Returns the values: of a list all of them.
Result<std::vector<std::string>> valuesOf(Reader &reader) {
  std::vector<std::string> values;
  bool isList = reader.takes('[');
  do {
    reader.skip(isList);
    if (isList && reader.takes(']'))
      return values;
    if (reader.isQuoted()) {
      auto text = reader.quoted();
      if (!text)
        return std::move(text).status();
      values.push_back(*std::move(text));
    } else if (std::string word = reader.bare(); !word.empty()) {
      values.push_back(word);
    } else {
      return reader.wrong("expected a value");
    }
    reader.skip(isList);
  } while (isList && reader.takes(','));
  if (isList && !reader.takes(']'))
    return reader.wrong("expected ',' or ']' in a list");
  return values;
}

Result<std::string> nameIn(Reader &reader) {
  if (reader.isQuoted())
    return reader.quoted();
  return reader.bare();
}

bool isGiven(Words words, std::string_view name) {
  for (std::string_view word : words) {
    if (word == "--")
      return false;
    if (word.starts_with("--") && word.substr(2).starts_with(name) &&
        (word.size() == name.size() + 2 || word[name.size() + 2] == '='))
      return true;
  }
  return false;
}

/// True if the command line says the same, or what excludes it.
bool isOverridden(const OptionTable &table, Words words,
                  std::string_view name) {
  if (isGiven(words, name))
    return true;
  for (const OptionTable::Choice &choice : table.choices())
    if (choice.isExclusive &&
        std::ranges::find(choice.names, name) != choice.names.end())
      for (std::string_view other : choice.names)
        if (isGiven(words, other))
          return true;
  for (const Option &option : table.options())
    for (const Option::Rule &rule : option.rules) {
      if (rule.kind != Option::Rule::Kind::Excludes)
        continue;
      std::string_view other = rule.conditions.front();
      if ((option.name == name && isGiven(words, other)) ||
          (other == name && isGiven(words, option.name)))
        return true;
    }
  return false;
}

Status readLine(Reader &reader, const OptionTable &table, Words words,
                std::string &section, std::vector<std::string> &all) {
  auto end = [&] {
    reader.skip(false);
    return reader.atLineEnd() ? Status::success()
                              : reader.wrong("expected the end of the line");
  };
  auto check = [&](const std::string &name) {
    std::vector<std::string_view> known;
    for (const Option &option : table.options())
      known.push_back(option.name);
    return name != "config" && table.find(name)
               ? Status::success()
               : reader.wrong("there is no option '" + name + "' here" +
                              didYouMean(name, known));
  };
  if (reader.takes('[')) {
    reader.skip(false);
    auto name = nameIn(reader);
    if (!name)
      return std::move(name).status();
    reader.skip(false);
    if (!reader.takes(']'))
      return reader.wrong("expected ']'");
    section = *name;
    if (Status status = check(section); !status)
      return status;
    if (!table.find(section)->isKeyed)
      return reader.wrong("'" + section + "' is no list of NAME=VALUE");
    return end();
  }
  auto name = nameIn(reader);
  if (!name)
    return std::move(name).status();
  reader.skip(false);
  if (name->empty() || !reader.takes('='))
    return reader.wrong("expected NAME = VALUE");
  if (section.empty())
    if (Status status = check(*name); !status)
      return status;
  reader.skip(false);
  auto values = valuesOf(reader);
  if (!values)
    return std::move(values).status();
  std::string option = section.empty() ? *name : section;
  if (isOverridden(table, words, option))
    return end();
  for (const std::string &value : *values)
    if (!section.empty())
      all.push_back("--" + section + "=" + *name + "=" + value);
    else if (table.find(option)->takesValue())
      all.push_back("--" + option + "=" + value);
    else if (value == "true")
      all.push_back("--" + option);
    else if (value != "false")
      return reader.wrong("expected true or false for '" + option + "'");
  return end();
}

} // namespace

Result<std::vector<std::string>> configWords(const OptionTable &table,
                                             Words words) {
  std::vector<std::string> all;
  std::string path;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i)
    if (words[i].starts_with("--config="))
      path = words[i].substr(9);
    else if (words[i] == "--config" && i + 1 < words.size())
      path = words[i + 1];
  if (path.empty())
    return all;
  // Also from a pipe.
  auto bytes = io::readBegin(path, kMost);
  if (!bytes)
    return std::move(bytes).status().in("--config");
  if (bytes->size() == kMost)
    return Status::usage(
        "--config: expected a file of less than 1 MiB but got " +
        io::inQuotes(path));
  Reader reader(path, io::asText(*bytes));
  std::string section;
  for (reader.skip(true); !reader.atEnd(); reader.skip(true))
    if (Status status = readLine(reader, table, words, section, all); !status)
      return status;
  return all;
}

} // namespace tandem::commands
