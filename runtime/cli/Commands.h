//===- Commands.h - the commands that need no compiler --------------------===//
//
// `run`, `train`, `bench` and `version`, as a library: `tandem-run` is these,
// and `tandem` adds those that compile. A command writes results to stdout,
// progress and warnings to stderr, and returns a Status; `runTool` alone prints
// errors and turns codes into exit codes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CLI_COMMANDS_H
#define TANDEM_RUNTIME_CLI_COMMANDS_H

#include "runtime/cli/Options.h"

namespace tandem::commands {

/// A command of a tool. `run` gets the tool's name, for help texts, and the
/// words after the command's name.
struct Command {
  std::string_view name;
  std::string_view summary;
  Status (*run)(std::string_view tool, Words words);
};

Status run(std::string_view tool, Words words);
Status train(std::string_view tool, Words words);
Status bench(std::string_view tool, Words words);
Status version(std::string_view tool, Words words);

/// Returns run, train, bench and version.
std::span<const Command> runtimeCommands();

/// Runs the command that `argv` names: the whole of a tool's main. Prints the
/// error, if any, as "TOOL: error: MESSAGE"; returns the exit code. What could
/// not be written to stdout is an error too.
int runTool(std::string_view tool, std::span<const Command> commands, int argc,
            const char *const *argv);

} // namespace tandem::commands

#endif
