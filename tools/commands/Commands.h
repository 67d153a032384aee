//===- Commands.h - the commands that need no compiler --------------------===//
//
// `run`, `predict`, `train`, `bench` and what every tool has, as a library:
// `tandem-run` is these, and `tandem` adds those that compile. A command writes
// results to stdout, progress and warnings to stderr, and returns a Status;
// `runTool` alone prints errors and turns codes into exit codes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_COMMANDS_H
#define TANDEM_TOOLS_COMMANDS_COMMANDS_H

#include "tools/commands/Anomaly.h"
#include "tools/commands/Doctor.h"
#include "tools/commands/Options.h"

#include <type_traits>

namespace tandem::commands {

struct Command;

/// A page of help that is of no single command.
struct Topic {
  std::string_view name, summary;
  std::string (*text)();
};

/// A program and what it can do.
struct Tool {
  std::string_view name;
  std::span<const Command> commands;
  std::span<const Topic> topics = {};
  std::span<const DoctorCheck> checks = {}; ///< of `doctor`
  std::string_view summary = {};          ///< what it does, for its manual page
  AnomalyLocator locateAnomaly = nullptr; ///< by the ops of a model

  const Command *find(std::string_view command) const;
};

/// A command of a tool; `commandOf` makes it.
struct Command {
  std::string_view name;
  std::string_view summary;
  /// Calls `use` with the table of the command's options, whose targets live
  /// until it returns.
  void (*withTable)(const std::function<void(OptionTable &)> &use);
  /// `words` are those after the command's name.
  Status (*run)(const Tool &tool, Words words);
};

/// Parses the words; if they ask for help, prints it. Returns false if there is
/// nothing left to do; then `status` is the outcome.
bool parseOrHelp(OptionTable &table, const Tool &tool, Words words,
                 Status &status);

template <typename Options>
Options optionsOf(Status (*)(const Options &, const Tool &));
template <typename Options> Options optionsOf(Status (*)(const Options &));

/// Returns the command that function `run` carries out. `run` takes the
/// command's options (and the tool), a struct that has the texts `usage` and
/// `description` and the function `declare(OptionTable &)`.
template <auto run>
Command commandOf(std::string_view name, std::string_view summary) {
  using Options = decltype(optionsOf(run));
  return {name, summary,
          [](const std::function<void(OptionTable &)> &use) {
            Options options;
            OptionTable table(Options::usage, Options::description);
            options.declare(table);
            use(table);
          },
          [](const Tool &tool, Words words) {
            Options options;
            OptionTable table(Options::usage, Options::description);
            options.declare(table);
            Status status;
            if (!parseOrHelp(table, tool, words, status))
              return status;
            if constexpr (std::is_invocable_v<decltype(run), const Options &>)
              return run(options);
            else
              return run(options, tool);
          }};
}

Command benchCommand();
Command completionCommand();
Command doctorCommand();
Command helpCommand();
/// `inspect` of artifacts and checkpoints; the compiler's shows models, too.
Command inspectFileCommand();
Command predictCommand();
Command runCommand();
Command trainCommand();
Command versionCommand();

/// Returns those of tandem-run, in the order in which help lists them.
std::span<const Command> runtimeCommands();
/// Returns the pages of help about what they share.
std::span<const Topic> runtimeTopics();

/// Runs the command that `argv` names: the whole of a tool's main. Prints the
/// error, if any, as "TOOL: error: MESSAGE"; returns the exit code. What could
/// not be written to stdout is an error too.
int runTool(const Tool &tool, int argc, const char *const *argv);

} // namespace tandem::commands

#endif
