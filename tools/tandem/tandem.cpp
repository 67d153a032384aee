//===- tandem.cpp - the command line of the compiler ----------------------===//
#include "cuda/Register.h"
#include "runtime/cli/Commands.h"
#include "tools/tandem/CompilerCommands.h"

#include <vector>

int main(int argc, char **argv) {
  using namespace tandem::commands;
  tandem::cuda::registerDevices();
  std::vector<Command> commands = {
      {"compile", "compile a model into an artifact", compile},
      {"check", "check every gradient of a model", check},
      {"inspect", "show what is in an artifact or model", inspect}};
  for (const Command &command : runtimeCommands())
    commands.push_back(command);
  return runTool("tandem", commands, argc, argv);
}
