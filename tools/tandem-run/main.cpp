//===- main.cpp - tandem-run: runs and trains artifacts -------------------===//
//
// The tool for machines that have no compiler: it needs libc, libstdc++, libm
// and pthread only. All of it is in tools/commands.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "tools/commands/Commands.h"
#include "tools/commands/DoctorLibraries.h"
#include "tools/commands/OutOfMemory.h"

int main(int argc, char **argv) {
  using namespace tandem::commands;
  prepareForOutOfMemory("tandem-run");
  tandem::cuda::registerDevices();
  static constexpr DoctorCheck checks[] = {checkLibraries};
  return runTool({"tandem-run", runtimeCommands(), runtimeTopics(), checks,
                  "runs and trains compiled models"},
                 argc, argv);
}
