//===- tandem.cpp - the command line of the compiler ----------------------===//
#include "cuda/Register.h"
#include "tools/commands/Commands.h"
#include "tools/commands/DoctorLibraries.h"
#include "tools/commands/OutOfMemory.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/FindAnomaly.h"

#include <vector>

int main(int argc, char **argv) {
  using namespace tandem::commands;
  prepareForOutOfMemory("tandem");
  tandem::cuda::registerDevices();
  std::vector<Command> commands = {
      compileCommand(),  checkCommand(),      inspectCommand(),  diffCommand(),
      explainCommand(),  profileCommand(),    simulateCommand(), linkCommand(),
      reduceCommand(),   checkpointCommand(), keysCommand(),     signCommand(),
      bugreportCommand()};
  for (const Command &command : runtimeCommands())
    if (command.name != "inspect")
      commands.push_back(command);
  std::vector<Topic> topics(compilerTopics().begin(), compilerTopics().end());
  for (const Topic &topic : runtimeTopics())
    topics.push_back(topic);
  static constexpr DoctorCheck checks[] = {checkCompiler, checkLibraries};
  return runTool({"tandem", commands, topics, checks,
                  "compiles, runs and trains models", locateInModel},
                 argc, argv);
}
