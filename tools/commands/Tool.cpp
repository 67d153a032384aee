//===- Tool.cpp - the frame around a tool's commands ----------------------===//
//
// Finds the command, prints help and errors, gives the exit code.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FormatVersion.h"
#include "runtime/artifact/NearestName.h"
#include "runtime/artifact/Text.h"
#include "runtime/io/Array.h"
#include "tools/commands/CommandName.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Help.h"
#include "tools/commands/OutOfMemory.h"
#include "tools/commands/Ranks.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>

namespace tandem::commands {
namespace {

Status unknownCommand(const Tool &tool, std::string_view name) {
  std::vector<std::string_view> known;
  std::string all;
  for (const Command &command : tool.commands) {
    known.push_back(command.name);
    all += (all.empty() ? "" : ", ") + std::string(command.name);
  }
  return Status::usage("unknown command " + io::inQuotes(name) +
                       didYouMean(name, known) + "; expected one of " + all);
}

Status dispatch(const Tool &tool, Words words) {
  if (words.empty())
    return Status::usage("expected a command; '" + std::string(tool.name) +
                         " help' lists them");
  std::string_view name = words[0];
  if (name == "--help" || name == "-h")
    name = "help";
  if (name == "--version" || name == "-V")
    name = "version";
  const Command *command = tool.find(name);
  if (!command)
    return unknownCommand(tool, name);
  beginCommand(command->name);
  return command->run(tool, words.subspan(1));
}

struct VersionOptions {
  static constexpr std::string_view usage = "version",
                                    description = "Prints the version.";

  void declare(OptionTable &) {}
};

Status version(const VersionOptions &, const Tool &tool) {
  std::printf("%s %s (artifact format %lld)\n", std::string(tool.name).c_str(),
              TANDEM_VERSION, static_cast<long long>(artifact::formatVersion));
  return Status::success();
}

} // namespace

const Command *Tool::find(std::string_view command) const {
  for (const Command &one : commands)
    if (one.name == command)
      return &one;
  return nullptr;
}

bool parseOrHelp(OptionTable &table, const Tool &tool, Words words,
                 Status &status) {
  status = table.parse(words);
  if (status && table.helpAsked())
    std::fputs(table.help(tool.name).c_str(), stdout);
  return status.ok() && !table.helpAsked();
}

Command versionCommand() {
  return commandOf<version>("version", "print the version");
}

std::span<const Command> runtimeCommands() {
  static const Command commands[] = {
      runCommand(),   predictCommand(),     trainCommand(),
      benchCommand(), inspectFileCommand(), doctorCommand(),
      helpCommand(),  completionCommand(),  versionCommand()};
  return commands;
}

/// A standard descriptor that is closed would be the next file's that is
/// opened, and what is printed would go into it. What is written here is an
/// error.
static void fillDescriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", O_RDONLY);
}

/// Runs a command, prints its error and tells the other ranks. Throws where
/// memory is out.
static int runAndReport(const Tool &tool, int argc, const char *const *argv) {
  std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
  Status status;
  try {
    status = dispatch(tool, words);
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &error) {
    status = Status::failed(std::string("internal error: ") + error.what());
  }
  errno = 0;
  bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (status.ok() && lost)
    status = Status::failed(std::string("cannot write to stdout: ") +
                            std::strerror(errno ? errno : EIO));
  std::string text = messageOfRank(status);
  if (!status && !text.empty())
    std::fprintf(stderr, "%s: error: %s\n", std::string(tool.name).c_str(),
                 artifact::forScreen(text).c_str());
  endRanks(status);
  return status.exitCode();
}

int runTool(const Tool &tool, int argc, const char *const *argv) {
  fillDescriptors();
  // A file that may not grow further is an error of a write, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return runAndReport(tool, argc, argv);
  } catch (const std::bad_alloc &) {
    printOutOfMemory();
  }
  try {
    endRanks(Status::failed("not enough memory"));
  } catch (const std::exception &) {
    // Other ranks see that this one is gone.
  }
  return static_cast<int>(Code::Failed);
}

} // namespace tandem::commands
