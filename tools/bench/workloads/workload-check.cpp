//===- workload-check.cpp - checks artifacts of the benchmark models ------===//
//
// What of tandem-workload needs no compiler, for machines that have none.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/workloads/Check.h"
#include "tools/commands/Commands.h"

using namespace tandem;

int main(int argc, char **argv) {
  const commands::Command list[] = {workloads::checkCommand(),
                                    commands::helpCommand()};
  return commands::runTool({"workload-check", list, {}}, argc, argv);
}
