//===- main.cpp - tandem-run: runs and trains artifacts -------------------===//
//
// The tool for machines that have no compiler: it needs libc, libstdc++, libm
// and pthread only. All of it is in runtime/cli.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "runtime/cli/Commands.h"

int main(int argc, char **argv) {
  tandem::cuda::registerDevices();
  return tandem::commands::runTool(
      "tandem-run", tandem::commands::runtimeCommands(), argc, argv);
}
