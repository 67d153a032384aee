//===- ManPage.cpp - tables of options as pages ---------------------------===//
//
// Pages of the manual use the macros of man(7) alone: a dash that is typed is
// "\-", and a line may not begin with a dot or an apostrophe. docs/options.md
// is the other kind of page.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Help.h"

namespace tandem::commands {
namespace {

std::string roff(std::string_view text) {
  std::string result;
  bool isStart = true;
  for (char c : text) {
    if (isStart && (c == '.' || c == '\''))
      result += "\\&";
    isStart = c == '\n';
    if (c == '-' || c == '\\')
      result += c == '-' ? "\\-" : "\\e";
    else
      result += c;
  }
  return result;
}

std::string upper(std::string text) {
  for (char &c : text)
    if (c >= 'a' && c <= 'z')
      c = char(c - 'a' + 'A');
  return text;
}

/// The head of a page: no date, so that equal sources give equal bytes.
std::string head(const std::string &name, std::string_view summary) {
  return ".TH " + roff(upper(name)) +
         " 1 \"\" \"tandem " TANDEM_VERSION "\" \"Tandem\"\n.SH NAME\n" +
         roff(name) + " \\- " + roff(summary) + "\n";
}

std::string entry(const std::string &left, const std::string &right) {
  return ".TP\n.B " + roff(left) + "\n" + roff(right) + "\n";
}

std::string exitStatus() {
  std::string text = ".SH EXIT STATUS\n", codes = exitCodesText();
  for (size_t i = 0; i < codes.size(); i = codes.find('\n', i) + 1)
    text += entry(codes.substr(i, 1),
                  codes.substr(i + 2, codes.find('\n', i) - i - 2));
  return text;
}

/// Returns "--a, --b=x, y": conditions, the values of one option together.
std::string conditionsText(const OptionTable &table,
                           const std::vector<std::string_view> &conditions) {
  std::string text;
  std::string_view last;
  for (std::string_view condition : conditions) {
    size_t equals = condition.find('=');
    bool isSame = !last.empty() && equals != std::string_view::npos &&
                  last == condition.substr(0, equals);
    text += (text.empty() ? "" : ", ") +
            (isSame ? std::string(condition.substr(equals + 1))
                    : table.writtenCondition(condition));
    last = condition.substr(0, equals);
  }
  return text;
}

/// What the option excludes, and what it is for alone.
std::string rulesText(const OptionTable &table, const Option &option) {
  using Kind = Option::Rule::Kind;
  std::string text;
  std::vector<std::string_view> excluded;
  for (const Option::Rule &rule : option.rules) {
    std::string first(rule.conditions.front());
    if (rule.kind == Kind::Excludes)
      excluded.push_back(rule.conditions.front());
    else if (rule.kind == Kind::OnlyWith)
      text += "; for --" + first + "=" + std::string(rule.conditions[1]);
    else if (rule.kind == Kind::OnlyFor)
      text += "; for " + std::string(rule.conditions[1]);
  }
  if (!excluded.empty())
    text += "; not with " + conditionsText(table, excluded);
  return text.empty() ? "" : " [" + text.substr(2) + "]";
}

} // namespace

std::string manPage(const Tool &tool) {
  std::string name(tool.name);
  std::string text = head(name, std::string(tool.summary)) +
                     ".SH SYNOPSIS\n.B " + roff(name) +
                     "\n.I COMMAND\n[options]\n.SH COMMANDS\n";
  for (const Command &command : tool.commands)
    text += entry(std::string(command.name), std::string(command.summary));
  text += exitStatus() + ".SH SEE ALSO\n";
  for (const Command &command : tool.commands)
    text += (&command == &tool.commands.front() ? "" : ",\n") +
            std::string(".BR ") + roff(name + "-" + std::string(command.name)) +
            " (1)";
  return text + "\n";
}

std::string manPage(const Tool &tool, const Command &command) {
  std::string name(tool.name), full = name + "-" + std::string(command.name);
  std::string text = head(full, command.summary);
  command.withTable([&](OptionTable &table) {
    text += ".SH SYNOPSIS\n.B " + roff(name) + " " + roff(table.usage()) +
            "\n.SH DESCRIPTION\n" + roff(table.description()) +
            "\n.SH OPTIONS\n";
    for (const OptionTable::Positional &argument : table.positionals())
      text += entry(std::string(argument.name), std::string(argument.help));
    std::string_view group, folded;
    for (const Option &option : table.options()) {
      if (option.folded) {
        folded = option.group;
        continue;
      }
      if (option.group != group)
        text += ".SS " + roff(option.group) + "\n";
      group = option.group;
      text += entry(spellingOf(option),
                    explanationOf(table, option) + rulesText(table, option));
    }
    if (!folded.empty())
      text += ".PP\nThe options of\n.BR " + roff(name) + "\\-" + roff(folded) +
              " (1)\nthat say how to compile count here too.\n";
  });
  return text + exitStatus() + ".SH SEE ALSO\n.BR " + roff(name) + " (1)\n";
}

//===----------------------------------------------------------------------===//
// docs/options.md
//===----------------------------------------------------------------------===//

namespace {

/// Text of a cell: bars would end it.
std::string cell(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|')
      result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string optionRow(const OptionTable &table, const Option &option) {
  std::string rules = rulesText(table, option);
  if (!rules.empty())
    rules = rules.substr(2, rules.size() - 3);
  return "| `" + cell(spellingOf(option)) + "` | " +
         cell(explanationOf(table, option)) + " | " + cell(rules) + " |\n";
}

} // namespace

std::string optionsPage(const Tool &tool) {
  std::string name(tool.name),
      text = "<!-- Printed by `" + name +
             " help --markdown`; `ninja -C build docs` "
             "writes it. -->\n\n# Options\n\nEvery "
             "option of every command of `" +
             name +
             "`, as the program parses it. "
             "[COMMANDS.md](COMMANDS.md) says what the "
             "commands do.\n";
  for (const Command &command : tool.commands)
    command.withTable([&](OptionTable &table) {
      text += "\n## " + std::string(command.name) + "\n\n`" + name + " " +
              std::string(table.usage()) + "`\n\n" +
              wrapped(table.description(), 0, 118) + "\n";
      std::string_view folded;
      bool isFirst = true;
      for (const Option &option : table.options()) {
        if (option.folded) {
          folded = option.group;
          continue;
        }
        if (isFirst)
          text +=
              "\n| option | meaning | not with, only for |\n|---|---|---|\n";
        isFirst = false;
        text += optionRow(table, option);
      }
      if (!folded.empty())
        text += "\nThe options of [`" + std::string(folded) + "`](#" +
                std::string(folded) + ") that say how to compile count too.\n";
    });
  for (const Topic &topic : tool.topics)
    text += "\n## " + std::string(topic.name) + "\n\n```text\n" + topic.text() +
            "```\n";
  return text;
}

} // namespace tandem::commands
