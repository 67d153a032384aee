//===- main.cpp - tandem-run: runs and trains artifacts -------------------===//
//
// The tool for machines that have no compiler: it needs libc, libstdc++, libm
// and pthread only. All of it is in runtime/cli.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "runtime/cli/Commands.h"
#include "tools/doctor/CudaChecks.h"

int main(int argc, char **argv) {
  using namespace tandem::commands;
  tandem::cuda::registerDevices();
  static constexpr DoctorCheck checks[] = {checkCudaLibraries};
  return runTool({"tandem-run", runtimeCommands(), runtimeTopics(), checks},
                 argc, argv);
}
