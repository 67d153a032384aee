//===- AllPairs.h - every pair of options of a command --------------------===//
//
// For each file that the command may get, each pair of options with each of
// their values becomes a command line, to which what they need is added. The
// line has to be refused if and only if the table's rules say so, with Usage,
// and the message has to name both options of each rule. Rules are evaluated
// here once more, by their meaning.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_CLI_ALLPAIRS_H
#define TANDEM_TESTS_RUNTIME_CLI_ALLPAIRS_H

#include "tools/commands/Commands.h"

#include <gtest/gtest.h>

namespace tandem::commands::test {

/// An option with one of the values that it can have.
struct Given {
  const Option *option;
  std::string value;

  std::string word() const {
    return option->written() + (value.empty() ? "" : "=" + value);
  }
  /// True for "name" and "name=value" of it.
  bool fulfils(std::string_view condition) const {
    size_t equals = condition.find('=');
    return condition.substr(0, equals) == option->name &&
           (equals == std::string_view::npos ||
            option->matches(value, condition.substr(equals + 1)));
  }
};

inline std::vector<Given> givensOf(const OptionTable &table) {
  std::vector<Given> all;
  for (const Option &option : table.options()) {
    std::vector<std::string_view> values = option.samples;
    values.insert(values.end(), option.choices.begin(), option.choices.end());
    if (option.kind == Option::Kind::Flag ||
        option.kind == Option::Kind::OptionalText)
      values.emplace_back("");
    else if (values.empty())
      values.emplace_back(option.kind == Option::Kind::Integer  ? "1"
                          : option.kind == Option::Kind::Number ? "0.5"
                          : option.value.find('=') == std::string_view::npos
                              ? "x"
                              : "x=1");
    for (std::string_view value : values)
      all.push_back({&option, std::string(value)});
  }
  return all;
}

class Line {
public:
  Line(const OptionTable &table, std::string file)
      : table(table), all(givensOf(table)), file(std::move(file)) {}

  bool has(std::string_view condition) const {
    return std::any_of(given.begin(), given.end(), [&](const Given &one) {
      return one.fulfils(condition);
    });
  }

  /// Adds an option, and what it needs unless that is there.
  void add(const Given &one) {
    if (!has(one.option->name))
      given.push_back(one);
    for (const Option::Rule &rule : one.option->rules)
      if (rule.kind == Option::Rule::Kind::Needs)
        addOneOf(rule.conditions);
  }

  /// Adds what no line can be without.
  void complete() {
    for (const Option &option : table.options())
      if (option.isRequired)
        addOneOf({option.name});
    for (const OptionTable::Choice &choice : table.choices())
      addOneOf(choice.names);
  }

  /// The pairs of options that cannot be together.
  std::vector<std::pair<std::string, std::string>> refusals() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    auto refuse = [&](const Option &a, std::string_view condition) {
      auto name = condition.substr(0, condition.find('='));
      const Option *b = table.find(name);
      pairs.emplace_back(a.written(), b ? b->written() : std::string(name));
    };
    using Kind = Option::Rule::Kind;
    for (const Given &one : given)
      for (const Option::Rule &rule : one.option->rules) {
        std::string_view first = rule.conditions.front();
        bool isFor = rule.kind == Kind::OnlyFor || rule.kind == Kind::NotFor;
        if (rule.kind == Kind::Excludes && has(first))
          refuse(*one.option, first);
        if (rule.kind == Kind::Needs &&
            std::none_of(rule.conditions.begin(), rule.conditions.end(),
                         [&](std::string_view c) { return has(c); }))
          refuse(*one.option, first);
        if (rule.kind == Kind::OnlyWith && has(first) &&
            !has(std::string(first) + "=" + std::string(rule.conditions[1])))
          refuse(*one.option, first);
        if (isFor && endsInOne(file, first) != (rule.kind == Kind::OnlyFor))
          pairs.emplace_back(one.option->written(), file);
      }
    for (const OptionTable::Choice &choice : table.choices())
      for (size_t i = 0; choice.isExclusive && i < choice.names.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (has(choice.names[i]) && has(choice.names[j]))
            pairs.emplace_back(table.find(choice.names[i])->written(),
                               table.find(choice.names[j])->written());
    return pairs;
  }

  std::vector<std::string> words() const {
    std::vector<std::string> result;
    for (const OptionTable::Positional &argument : table.positionals())
      result.push_back(
          &argument == &table.positionals().front() && argument.choices.empty()
              ? file
          : argument.choices.empty() ? "x"
                                     : std::string(argument.choices.front()));
    for (const Given &one : given)
      result.push_back(one.word());
    return result;
  }

private:
  void addOneOf(const std::vector<std::string_view> &conditions) {
    if (std::any_of(conditions.begin(), conditions.end(),
                    [&](std::string_view c) { return has(c); }))
      return;
    for (const Given &one : all)
      if (one.fulfils(conditions.front()))
        return add(one);
  }

  const OptionTable &table;
  std::vector<Given> all;
  std::string file;
  std::vector<Given> given;
};

/// Files of each kind that a rule is about, and of another.
inline std::vector<std::string> filesFor(const OptionTable &table) {
  std::vector<std::string> files = {"m.mlir"};
  for (const Option &option : table.options())
    for (const Option::Rule &rule : option.rules)
      if (rule.kind == Option::Rule::Kind::OnlyFor ||
          rule.kind == Option::Rule::Kind::NotFor) {
        std::string_view suffixes = rule.conditions.front();
        std::string file =
            "m" + std::string(suffixes.substr(0, suffixes.find('|')));
        if (std::find(files.begin(), files.end(), file) == files.end())
          files.push_back(file);
      }
  return files;
}

inline void checkLine(const Command &command, const Line &line) {
  std::vector<std::string> words = line.words();
  std::vector<std::string_view> views(words.begin(), words.end());
  std::string text(command.name);
  for (const std::string &word : words)
    text += " " + word;
  command.withTable([&](OptionTable &table) {
    Status status = table.parse(views);
    auto refusals = line.refusals();
    EXPECT_EQ(status.code(), refusals.empty() ? Code::Ok : Code::Usage)
        << text << "\n"
        << status.message();
    for (const auto &[a, b] : refusals) {
      EXPECT_NE(status.message().find(a), std::string::npos)
          << text << "\n"
          << status.message();
      EXPECT_NE(status.message().find(b), std::string::npos)
          << text << "\n"
          << status.message();
    }
  });
}

/// Checks every pair, and that every name in a rule is one of the table's.
/// Returns the number of lines.
inline int checkAllPairs(const Command &command) {
  int lines = 0;
  command.withTable([&](OptionTable &table) {
    using Kind = Option::Rule::Kind;
    for (const Option &option : table.options())
      for (const Option::Rule &rule : option.rules)
        for (std::string_view condition : rule.conditions)
          if (rule.kind == Kind::Needs || rule.kind == Kind::Excludes) {
            EXPECT_TRUE(table.find(condition.substr(0, condition.find('='))))
                << option.written() << " is about '" << condition << "'";
          }
    std::vector<Given> all = givensOf(table);
    for (const std::string &file : filesFor(table))
      for (const Given &a : all)
        for (const Given &b : all) {
          Line line(table, file);
          line.add(a);
          line.add(b);
          line.complete();
          checkLine(command, line);
          ++lines;
        }
  });
  return lines;
}

} // namespace tandem::commands::test

#endif
