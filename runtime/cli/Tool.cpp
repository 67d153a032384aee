//===- Tool.cpp - the frame around a tool's commands ----------------------===//
//
// Finds the command, prints help and errors, gives the exit code.
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Commands.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

namespace tandem::commands {
namespace {

std::string overview(std::string_view tool, std::span<const Command> commands) {
  std::string text = "usage: " + std::string(tool) + " COMMAND ...\n\n";
  for (const Command &command : commands) {
    std::string name(command.name);
    name.resize(std::max<size_t>(name.size() + 2, 10), ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  text += "\n'" + std::string(tool) +
          " COMMAND --help' says more.\n"
          "exit codes: 0 done, 1 failed, 2 usage, 3 unsupported, 4 numbers "
          "differ,\n            5 device not available\n";
  return text;
}

Status dispatch(std::string_view tool, std::span<const Command> commands,
                std::span<const std::string_view> words) {
  if (words.empty())
    return Status::usage("expected a command; '" + std::string(tool) +
                         " --help' lists them");
  std::string_view name = words[0];
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(overview(tool, commands).c_str(), stdout);
    return Status::success();
  }
  if (name == "--version")
    name = "version";
  for (const Command &command : commands)
    if (command.name == name)
      return command.run(tool, words.subspan(1));
  std::string known;
  for (const Command &command : commands)
    known += (known.empty() ? "" : ", ") + std::string(command.name);
  return Status::usage("unknown command '" + std::string(name) +
                       "'; expected one of " + known);
}

} // namespace

std::span<const Command> runtimeCommands() {
  static constexpr Command commands[] = {
      {"run", "run a program of an artifact on given inputs", run},
      {"train", "train the model of an artifact on data", train},
      {"bench", "time a program of an artifact", bench},
      {"version", "print the version", version}};
  return commands;
}

Status version(std::string_view tool, Words words) {
  OptionTable options("version", "Prints the version.");
  if (Status status = options.parse(words); !status)
    return status;
  if (options.helpAsked())
    std::fputs(options.help(tool).c_str(), stdout);
  else
    std::printf("%s %s (artifact format 1)\n", std::string(tool).c_str(),
                TANDEM_VERSION);
  return Status::success();
}

int runTool(std::string_view tool, std::span<const Command> commands, int argc,
            const char *const *argv) {
  // A file that may not grow further is an error of a write, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
  Status status;
  try {
    status = dispatch(tool, commands, words);
  } catch (const std::bad_alloc &) {
    status = Status::failed("not enough memory");
  } catch (const std::exception &error) {
    status = Status::failed(std::string("internal error: ") + error.what());
  }
  errno = 0;
  bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (status.ok() && lost)
    status = Status::failed(std::string("cannot write to stdout: ") +
                            std::strerror(errno ? errno : EIO));
  if (!status)
    std::fprintf(stderr, "%s: error: %s\n", std::string(tool).c_str(),
                 status.message().c_str());
  return status.exitCode();
}

} // namespace tandem::commands
