//===- Completion.cpp - completions of shells from tables of options ------===//
//
// Commands, options, and the values of those that have few; everything else is
// completed as a file.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Help.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Array.h"

#include <cctype>
#include <cstdio>

namespace tandem::commands {
namespace {

/// The name of a function for a tool: "_tandem_run".
std::string functionOf(const Tool &tool) {
  std::string name = "_" + std::string(tool.name);
  for (char &c : name)
    if (c == '-')
      c = '_';
  return name;
}

/// In single quotes of a shell, in which `escaped` get a backslash before them.
std::string shellText(std::string_view text, std::string_view escaped = {}) {
  std::string result = "'";
  for (char c : text) {
    if (escaped.find(c) != std::string_view::npos)
      result += '\\';
    if (c == '\'')
      result += "'\\''";
    else
      result += c == '\n' ? ' ' : c;
  }
  return result + "'";
}

bool isFile(std::string_view value) {
  // "X.tdm", and not "KEY=VALUE,...".
  size_t dot = value.find_first_not_of('.', value.find('.'));
  return (dot != std::string_view::npos && value[dot - 1] == '.' &&
          std::isalpha(static_cast<unsigned char>(value[dot]))) ||
         value.find("FILE") != std::string_view::npos ||
         value.find("DIR") != std::string_view::npos;
}

template <typename Text> std::string joined(const std::vector<Text> &words) {
  std::string text;
  for (std::string_view word : words)
    text += (text.empty() ? "" : " ") + std::string(word);
  return text;
}

/// The words that the first argument of a command can be, if they are few.
std::string wordsOf(const Tool &tool, const Command &command,
                    const OptionTable &table) {
  std::vector<std::string_view> words;
  if (!table.positionals().empty())
    words = table.positionals().front().choices;
  if (command.name == "help") {
    for (const Command &one : tool.commands)
      words.push_back(one.name);
    for (const Topic &topic : tool.topics)
      words.push_back(topic.name);
  }
  return joined(words);
}

std::string commandNames(const Tool &tool) {
  std::vector<std::string_view> names;
  for (const Command &command : tool.commands)
    names.push_back(command.name);
  return joined(names);
}

/// Bash parts words at '=', so "--name=val" comes as three.
std::string bash(const Tool &tool) {
  std::string function = functionOf(tool), options, values;
  for (const Command &command : tool.commands)
    command.withTable([&](OptionTable &table) {
      std::string name(command.name), all = wordsOf(tool, command, table);
      for (const Option &option : table.options()) {
        all += " " + option.written() + (option.takesValue() ? "=" : "");
        if (auto known = option.completions(); !known.empty())
          values += "    " + name + option.written() +
                    ") values=" + shellText(joined(known)) + " ;;\n";
      }
      options +=
          "    " + name + ") options=" + shellText(all + " --help") + " ;;\n";
    });
  return "# Completions of " + std::string(tool.name) + " for bash.\n" +
         function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} options= values= name= "
         "spaced=\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    options=" +
         shellText(commandNames(tool)) +
         "\n"
         "  else\n"
         "    case ${COMP_WORDS[1]} in\n" +
         options +
         "    esac\n"
         "  fi\n"
         "  if [ \"$word\" = = ]; then\n"
         "    name=${COMP_WORDS[COMP_CWORD - 1]} word=\n"
         "  elif [ \"$COMP_CWORD\" -gt 2 ] &&\n"
         "    [ \"${COMP_WORDS[COMP_CWORD - 1]}\" = = ]; then\n"
         "    name=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  elif [ \"$COMP_CWORD\" -gt 2 ] &&\n"
         "    [[ ${COMP_WORDS[COMP_CWORD - 1]} == -* ]]; then\n"
         "    name=${COMP_WORDS[COMP_CWORD - 1]} spaced=1\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]}$name in\n" +
         values +
         "  esac\n"
         "  [ -n \"$spaced\" ] && [ -z \"$values\" ] && name=\n"
         "  if [ -n \"$values\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
         "  elif [ -z \"$name\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
         "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
         "  fi\n"
         "}\n"
         "complete -o default -F " +
         function + " " + std::string(tool.name) + "\n";
}

/// One specification of _arguments: '*--dim=[help]:NAME=N: '.
std::string zshOption(const Option &option) {
  std::string spec = option.repeats() ? "*" : "";
  spec += option.written();
  if (option.takesValue() && option.name.size() > 1)
    spec += option.kind == Option::Kind::OptionalText ? "=-" : "=";
  std::string help, value;
  for (char c : option.help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      help += '\\';
    help += c;
  }
  if (option.takesValue()) {
    auto known = option.completions();
    for (std::string &word : known)
      for (size_t i = 0; (i = word.find(':', i)) != word.npos; i += 2)
        word.insert(i, "\\");
    for (char c : option.value)
      value += c == ':' ? "\\:" : std::string(1, c);
    value = (option.kind == Option::Kind::OptionalText ? "::" : ":") + value +
            ":" +
            (!known.empty()         ? "(" + joined(known) + ")"
             : isFile(option.value) ? "_files"
                                    : " ");
  }
  return shellText(spec + "[" + help + "]" + value);
}

std::string zsh(const Tool &tool) {
  std::string function = functionOf(tool), commands, cases;
  for (const Command &command : tool.commands) {
    commands += " " + shellText(std::string(command.name) + ":" +
                                std::string(command.summary));
    command.withTable([&](OptionTable &table) {
      cases += "    " + std::string(command.name) + ")\n      _arguments";
      for (const Option &option : table.options())
        cases += " \\\n        " + zshOption(option);
      std::string words = wordsOf(tool, command, table);
      cases += " \\\n        '--help[print the help]' \\\n        " +
               shellText("*:argument:" +
                         (words.empty() ? "_files" : "(" + words + ")")) +
               " ;;\n";
    });
  }
  return "#compdef " + std::string(tool.name) + "\n" + function +
         "() {\n  local -a commands=(" + commands +
         ")\n  if ((CURRENT == 2)); then\n    _describe command commands\n"
         "    return\n  fi\n  shift words\n  ((CURRENT--))\n"
         "  case $words[1] in\n" +
         cases + "  esac\n}\n" + "compdef " + function + " " +
         std::string(tool.name) + "\n";
}

std::string fish(const Tool &tool) {
  std::string name(tool.name),
      text = "# Completions of " + name + " for fish.\n";
  for (const Command &command : tool.commands) {
    text += "complete -c " + name + " -n __fish_use_subcommand -f -a " +
            std::string(command.name) + " -d " + shellText(command.summary) +
            "\n";
    command.withTable([&](OptionTable &table) {
      std::string start = "complete -c " + name +
                          " -n '__fish_seen_subcommand_from " +
                          std::string(command.name) + "' ";
      std::string words = wordsOf(tool, command, table);
      if (!words.empty())
        text += start + "-f -a " + shellText(words) + "\n";
      for (const Option &option : table.options()) {
        text += start + (option.name.size() == 1 ? "-s " : "-l ") +
                std::string(option.name);
        if (option.takesValue() && option.kind != Option::Kind::OptionalText)
          text += isFile(option.value) ? " -r" : " -x";
        if (auto known = option.completions(); !known.empty())
          text += " -a " + shellText(joined(known));
        text += " -d " + shellText(option.help, "\\") + "\n";
      }
    });
  }
  return text;
}

struct CompletionOptions {
  static constexpr std::string_view
      usage = "completion bash|zsh|fish",
      description = "Prints the completions of commands and options for a "
                    "shell. To use them: source <(tandem completion bash), "
                    "source <(tandem completion zsh), or tandem completion "
                    "fish | source.";
  std::string shell;

  void declare(OptionTable &table) {
    table.positional("SHELL", shell, "bash, zsh or fish").choices = {
        "bash", "zsh", "fish"};
  }
};

Status completion(const CompletionOptions &options, const Tool &tool) {
  std::fputs(completionsFor(tool, options.shell).c_str(), stdout);
  return Status::success();
}

} // namespace

std::string completionsFor(const Tool &tool, std::string_view shell) {
  return shell == "bash"   ? bash(tool)
         : shell == "zsh"  ? zsh(tool)
         : shell == "fish" ? fish(tool)
                           : "";
}

Command completionCommand() {
  return commandOf<completion>("completion", "print completions for a shell");
}

} // namespace tandem::commands
