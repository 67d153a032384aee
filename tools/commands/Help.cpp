//===- Help.cpp - tables of options as text -------------------------------===//
#include "tools/commands/Help.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Array.h"

#include <algorithm>
#include <cstdio>

namespace tandem::commands {
namespace {

constexpr size_t kWidth = 80;
/// Longer spellings have their explanation on the next line.
constexpr size_t kLongest = 24;

using Row = std::pair<std::string, std::string>;

std::string rowsText(const std::vector<Row> &rows, size_t column) {
  std::string text;
  for (const auto &[left, right] : rows) {
    text += "  " + left;
    text += left.size() + 2 <= column ? std::string(column - left.size(), ' ')
                                      : "\n" + std::string(column + 2, ' ');
    text += wrapped(right, column + 2, kWidth) + "\n";
  }
  return text;
}

/// Where explanations begin: after the longest spelling that fits.
size_t columnOf(const std::vector<Row> &rows) {
  size_t width = 0;
  for (const Row &row : rows)
    if (row.first.size() <= kLongest)
      width = std::max(width, row.first.size());
  return width + 2;
}

std::string foldedText(const OptionTable &table, std::string_view tool) {
  std::string names, command;
  for (const Option &option : table.options())
    if (option.folded) {
      names += (names.empty() ? "" : ", ") + option.written();
      command = option.group;
    }
  if (names.empty())
    return "";
  return "\nand those of '" + command + "' ('" + std::string(tool) + " help " +
         command + "'):\n  " + wrapped(names, 2, kWidth) + "\n";
}

std::string conditionsText(const OptionTable &table, const Option &option) {
  std::string text;
  for (const Option::Rule &rule : option.rules)
    if (rule.kind == Option::Rule::Kind::Needs)
      for (std::string_view one : rule.conditions)
        text += (one == rule.conditions.front() ? "; needs " : " or ") +
                table.writtenCondition(one);
  return text;
}

} // namespace

std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string result;
  size_t column = indent;
  for (size_t i = 0; i < text.size();) {
    size_t end = std::min(text.find_first_of(" \n", i), text.size());
    std::string_view word = text.substr(i, end - i);
    i = end + 1;
    if (word.empty())
      continue;
    if (!result.empty() && column + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!result.empty()) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string spellingOf(const Option &option) {
  std::string value(option.value);
  if (!option.takesValue())
    return option.written();
  if (option.kind == Option::Kind::OptionalText)
    return option.written() + "[=" + value + "]";
  return option.written() + (option.name.size() == 1 ? " " : "=") + value;
}

std::string explanationOf(const OptionTable &table, const Option &option) {
  std::string more;
  std::string bounds = option.boundsText();
  if (!bounds.empty() && bounds != "of at least 0" && bounds != "of at least 1")
    more += "; " + bounds;
  if (!option.fallback.empty())
    more += "; default: " + std::string(option.fallback);
  if (option.isRequired)
    more += "; required" +
            (option.requiredUnless.empty()
                 ? ""
                 : " without --" + std::string(option.requiredUnless));
  more += conditionsText(table, option);
  return std::string(option.help) +
         (more.empty() ? "" : " (" + more.substr(2) + ")");
}

std::string OptionTable::help(std::string_view tool) const {
  std::string text = "usage: " + std::string(tool) + " " + std::string(usage_) +
                     "\n\n" + wrapped(description_, 0, kWidth) + "\n";
  std::vector<std::pair<std::string_view, std::vector<Row>>> groups(1);
  for (const Positional &argument : positionals_)
    groups[0].second.emplace_back(argument.name, argument.help);
  for (const Option &option : options_) {
    if (option.folded)
      continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](auto &one) {
      return one.first == option.group;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), {option.group, {}});
    group->second.emplace_back(spellingOf(option),
                               explanationOf(*this, option));
  }
  groups.back().second.emplace_back("--help", "print this text");
  std::vector<Row> all;
  for (const auto &group : groups)
    all.insert(all.end(), group.second.begin(), group.second.end());
  for (const auto &[heading, rows] : groups)
    if (!rows.empty())
      text += "\n" + (heading.empty() ? "" : std::string(heading) + ":\n") +
              rowsText(rows, columnOf(all));
  return text + foldedText(*this, tool);
}

std::string exitCodesText() {
  return "0 done\n1 failed: a file, a disk, an interruption\n"
         "2 usage: a wrong option, name, shape or type\n"
         "3 unsupported: right, but this program cannot do it\n"
         "4 numbers differ\n5 a device or processor feature is not available\n";
}

std::string overviewText(const Tool &tool) {
  std::string name(tool.name);
  std::vector<Row> commands, topics;
  for (const Command &command : tool.commands)
    commands.emplace_back(command.name, command.summary);
  for (const Topic &topic : tool.topics)
    topics.emplace_back(topic.name, topic.summary);
  std::vector<Row> all = commands;
  all.insert(all.end(), topics.begin(), topics.end());
  std::string text = "usage: " + name + " COMMAND ...\n\ncommands:\n" +
                     rowsText(commands, columnOf(all));
  if (!topics.empty())
    text += "\nother pages of '" + name + " help':\n" +
            rowsText(topics, columnOf(all));
  text += "\n'" + name + " help COMMAND' lists the options of a command.\n" +
          "\nexit codes:\n";
  std::string codes = exitCodesText();
  for (size_t i = 0; i < codes.size(); i = codes.find('\n', i) + 1)
    text += "  " + codes.substr(i, codes.find('\n', i) - i + 1);
  return text;
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

namespace {

struct HelpOptions {
  static constexpr std::string_view
      usage = "help [COMMAND|TOPIC|OPTION]",
      description = "Explains a command, one of the other pages, or the "
                    "options of a name; without one, lists them.";
  std::string about;
  bool man = false, markdown = false;

  void declare(OptionTable &table) {
    table.positional("ABOUT", about, "a command, a page or an option's name")
        .isRequired = false;
    table.flag("man", man,
               "print the page for man(1) of the command, or of "
               "the program");
    table
        .flag("markdown", markdown,
              "print the options of all commands, as in "
              "docs/options.md")
        .excludes("man");
  }
};

/// The options of all commands that are called `name`.
std::string optionText(const Tool &tool, std::string_view name) {
  std::string text;
  for (const Command &command : tool.commands)
    command.withTable([&](OptionTable &table) {
      const Option *option = table.find(name);
      if (option && !option->folded)
        text += std::string(tool.name) + " " + std::string(command.name) + " " +
                spellingOf(*option) + "\n    " +
                wrapped(explanationOf(table, *option), 4, kWidth) + "\n";
    });
  return text;
}

Status unknownPage(const Tool &tool, std::string_view about) {
  std::vector<std::string_view> known;
  for (const Command &command : tool.commands)
    known.push_back(command.name);
  for (const Topic &topic : tool.topics)
    known.push_back(topic.name);
  std::string near = didYouMean(about, known);
  return Status::usage("there is no help about " + io::inQuotes(about) +
                       (near.empty() ? "; '" + std::string(tool.name) +
                                           " help' lists what there is"
                                     : near));
}

Status help(const HelpOptions &options, const Tool &tool) {
  std::string_view about = options.about;
  std::string text;
  const Command *command = tool.find(about);
  if (options.markdown) {
    text = optionsPage(tool);
  } else if (about.empty()) {
    text = options.man ? manPage(tool) : overviewText(tool);
  } else if (command && options.man) {
    text = manPage(tool, *command);
  } else if (command) {
    command->withTable(
        [&](OptionTable &table) { text = table.help(tool.name); });
  } else {
    for (const Topic &topic : tool.topics)
      if (topic.name == about)
        text = topic.text();
    if (text.empty())
      text = optionText(tool, about);
  }
  if (text.empty() || (options.man && !about.empty() && !command))
    return unknownPage(tool, about);
  std::fputs(text.c_str(), stdout);
  return Status::success();
}

/// `help --lr` is `help lr`, and `help -o` is `help o`.
Status helpAboutOption(const Tool &tool, Words words) {
  std::vector<std::string_view> plain(words.begin(), words.end());
  for (std::string_view &word : plain)
    if (word.starts_with("--") && word != "--man" && word != "--markdown" &&
        word != "--help")
      word.remove_prefix(2);
    else if (word.size() == 2 && word[0] == '-' && word != "--" && word != "-h")
      word.remove_prefix(1);
  return commandOf<help>("help", "").run(tool, plain);
}

} // namespace

Command helpCommand() {
  Command command =
      commandOf<help>("help", "explain a command, an option or a subject");
  command.run = helpAboutOption;
  return command;
}

} // namespace tandem::commands
