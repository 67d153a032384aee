//===- OptionsFuzz.cpp - any bytes as a command line ----------------------===//
//
// The bytes choose a command, some of its options, and values that are made of
// what the option's own declaration and the pages of help know, of numbers that
// are hard to handle, and of brackets. A line is taken or refused with Usage
// and a message, and the same line is refused with the same one. What is taken
// says the same in a file of options. No file is read but what options name,
// none of which is there, and nothing is written.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Argument.h"
#include "runtime/io/Cast.h"
#include "tests/fuzz/Decisions.h"
#include "tests/fuzz/Fuzz.h"
#include "tools/commands/Augment.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Config.h"
#include "tools/commands/ImageFit.h"
#include "tools/commands/Metrics.h"
#ifdef TANDEM_WITH_COMPILER
#include "tools/tandem/CompilerCommands.h"
#endif

#include <algorithm>

using namespace tandem;
using namespace tandem::commands;
using namespace tandem::fuzz;

namespace {

/// The commands that are not the parser's alone: `help` and `completion` take
/// few words.
std::vector<Command> commandsOfTool() {
  std::vector<Command> all(runtimeCommands().begin(), runtimeCommands().end());
#ifdef TANDEM_WITH_COMPILER
  // The options of `compile` are more than those of all others.
  for (const Command &command :
       {compileCommand(), compileCommand(), compileCommand(), checkCommand(),
        inspectCommand(), simulateCommand(), linkCommand(), diffCommand(),
        profileCommand(), explainCommand(), reduceCommand(),
        checkpointCommand(), keysCommand(), signCommand(), bugreportCommand()})
    all.push_back(command);
#endif
  return all;
}

/// The words of a text that values are made of.
void addWords(std::string_view text, std::vector<std::string> &words) {
  auto isPart = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '.' || c == '-';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isPart(text[end]))
      ++end;
    if (end > at && end - at < 24)
      words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
}

const std::vector<std::string> &wordsOfHelp() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> words;
    for (const Topic &topic : runtimeTopics())
      addWords(topic.text(), words);
#ifdef TANDEM_WITH_COMPILER
    for (const Topic &topic : compilerTopics())
      addWords(topic.text(), words);
#endif
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
  }();
  return all;
}

constexpr std::string_view kPieces[] = {"=",
                                        ",",
                                        ":",
                                        "+",
                                        "x",
                                        "[",
                                        "]",
                                        "/",
                                        "@",
                                        ";",
                                        "0",
                                        "1",
                                        "-1",
                                        "2",
                                        "0.5",
                                        "1e-3",
                                        "1e308",
                                        "1e400",
                                        "1e-50",
                                        "nan",
                                        "inf",
                                        "-0",
                                        "0x1p3",
                                        "1.5",
                                        " ",
                                        "\n",
                                        "\x1b[1m",
                                        "\xff",
                                        "é",
                                        "(",
                                        ")",
                                        "*",
                                        "?",
                                        "^",
                                        "$",
                                        "\\",
                                        ".*",
                                        "{1,3}",
                                        "|",
                                        "GiB",
                                        "kB",
                                        "[0,1]",
                                        "{000..003}",
                                        "{a,b}",
                                        "{0..99999999999}",
                                        ".npy",
                                        ".npz:a",
                                        ".csv:a..b,-c",
                                        ".safetensors",
                                        "=@m.npy",
                                        "-",
                                        "--",
                                        "'",
                                        "\"",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "65536",
                                        "table:@none.csv",
                                        "h",
                                        "m",
                                        "s",
                                        "%"};

/// A value for `option`: one that is right, with changes, or any pieces.
std::string valueFor(const Option &option, Decisions &next) {
  std::vector<std::string> words;
  for (std::string_view sample : option.samples)
    words.emplace_back(sample);
  for (std::string_view choice : option.choices)
    words.emplace_back(choice);
  size_t right = words.size();
  addWords(option.value, words);
  addWords(option.help, words);
  for (std::string &other : option.completions())
    words.push_back(std::move(other));
  auto word = [&]() -> std::string {
    if (!words.empty() && !next.seldom(3))
      return words[next.below(words.size())];
    const auto &known = wordsOfHelp();
    return known[next.below(known.size())];
  };
  std::string value = right && !next.seldom(3) ? words[next.below(right)] : "";
  for (size_t changes = next.below(5); changes; --changes) {
    std::string piece =
        next.seldom(3) ? word() : std::string(next.oneOf(kPieces));
    size_t at = value.empty() ? 0 : next.below(value.size() + 1);
    size_t count = next.seldom(3) ? next.below(8) : 0;
    if (next.seldom(2))
      value.insert(value.size(), piece);
    else
      value.replace(at, count, piece);
  }
  // A long one, of which a pattern may become many.
  if (next.seldom(64))
    for (int times = 0; times < 8 && value.size() < 4096; ++times)
      value += value;
  return value;
}

/// Adds the option `name` with a value that is right, and what that needs.
void addRight(const OptionTable &table, std::string_view condition,
              std::vector<std::string> &words, int depth) {
  size_t equals = condition.find('=');
  const Option *option = table.find(condition.substr(0, equals));
  if (!option || depth > 4)
    return;
  std::string_view value = equals != condition.npos
                               ? condition.substr(equals + 1)
                           : !option->samples.empty() ? option->samples.front()
                           : !option->choices.empty() ? option->choices.front()
                                                      : "1";
  words.push_back(option->written());
  if (option->takesValue())
    words.back() += "=" + std::string(value);
  for (const Option::Rule &rule : option->rules)
    if (rule.kind == Option::Rule::Kind::Needs)
      addRight(table, rule.conditions.front(), words, depth + 1);
}

std::vector<std::string> lineFor(const OptionTable &table, Decisions &next) {
  static constexpr const char *files[] = {"m.mlir", "m.onnx", "m.json", "x.tdm",
                                          "m.pt2",  "m.bin",  "",       "\x1b",
                                          "a=b",    "m"};
  std::vector<std::string> words;
  for (const OptionTable::Positional &argument : table.positionals())
    words.emplace_back(!argument.choices.empty() && !next.seldom(4)
                           ? next.oneOf(argument.choices)
                           : next.oneOf(files));
  bool isComplete = !next.seldom(4);
  size_t most = table.options().empty() ? 0 : 1 + next.below(4);
  for (size_t count = most; count; --count) {
    const Option &option = next.oneOf(table.options());
    std::string word = option.written();
    if (option.kind == Option::Kind::Flag ? next.seldom(16) : !next.seldom(16))
      word += (next.seldom(8) ? " " : "=") + valueFor(option, next);
    words.push_back(std::move(word));
    for (const Option::Rule &rule : option.rules)
      if (isComplete && rule.kind == Option::Rule::Kind::Needs)
        addRight(table, rule.conditions.front(), words, 0);
  }
  for (const Option &option : table.options())
    if (isComplete && option.isRequired)
      addRight(table, option.name, words, 0);
  for (const OptionTable::Choice &choice : table.choices())
    if (isComplete)
      addRight(table, choice.names.front(), words, 0);
  if (next.seldom(16))
    words.emplace_back(next.oneOf(kPieces));
  return words;
}

std::vector<std::string_view> viewsOf(const std::vector<std::string> &words) {
  return {words.begin(), words.end()};
}

/// What is read when all options are right, and not while a line is parsed.
void parseParts(const std::string &text) {
  auto argument = io::parseArgument(text);
  if (argument) {
    // As many as a pattern says: it must say no more than can be.
    (void)argument->paths().size();
    (void)argument->where();
    if (Status status = io::checkPlace(*argument); !status)
      requireShown(status.message());
  } else {
    requireShown(argument.status().message());
  }
  auto check = [](const Status &status) {
    if (!status)
      requireShown(status.message());
  };
  check(io::Cast::parse(text).status());
  check(Augmentation::parse(text).status());
  check(Metric::parse(text).status());
  check(RowShare::parse(text).status());
}

/// Says what is wrong with a file that a table wrote itself.
void requireTaken(const Status &status, const std::string &resolved) {
  if (!status)
    std::fprintf(stderr, "%s\nof\n%s\n", status.message().c_str(),
                 resolved.c_str());
  require(status.ok());
}

void play(const Command &command, Decisions next) {
  std::vector<std::string> words;
  std::string resolved;
  Status first;
  command.withTable([&](OptionTable &table) {
    words = lineFor(table, next);
    first = table.parse(viewsOf(words));
    // Commands without --config have options of one letter, too.
    if (first && !table.helpAsked() && table.find("config"))
      resolved = configOf(table);
  });
  // A file that --lr-schedule names is not there.
  require(first.ok() || first.code() == Code::Usage ||
          first.code() == Code::Failed);
  if (!first)
    requireShown(first.message());
  command.withTable([&](OptionTable &table) {
    Status again = table.parse(viewsOf(words));
    require(again.code() == first.code() && again.message() == first.message());
  });
  if (!resolved.empty())
    command.withTable([&](OptionTable &table) {
      auto all = wordsOfConfig(table, {}, "resolved.toml", resolved);
      requireTaken(all.status(), resolved);
      std::vector<std::string_view> views;
      for (const OptionTable::Positional &argument : table.positionals()) {
        (void)argument;
        views.push_back(words[views.size()]);
      }
      for (const ConfigWord &word : *all)
        views.push_back(word.text);
      requireTaken(table.parse(views), resolved);
    });
  for (const std::string &word : words)
    if (size_t equals = word.find('='); equals != std::string::npos)
      parseParts(word.substr(equals + 1));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<Command> commands = commandsOfTool();
  Decisions next(std::span<const uint8_t>(data, size));
  const Command &command = next.oneOf(commands);
  play(command, next);
  return 0;
}
