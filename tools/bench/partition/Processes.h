//===- Processes.h - other programs, and the memory that they take --------===//
#ifndef TANDEM_TOOLS_BENCH_PARTITION_PROCESSES_H
#define TANDEM_TOOLS_BENCH_PARTITION_PROCESSES_H

#include "runtime/artifact/Status.h"

#include <string>
#include <vector>

namespace tandem::bench {

struct Finished {
  std::string output;    ///< standard output
  int64_t peakBytes = 0; ///< the largest resident set that the process had
};

/// Runs a program (words[0], looked up in PATH) to its end; its stderr is
/// dropped. Fails if it cannot be started or does not exit with 0.
Result<Finished> run(const std::vector<std::string> &words);

/// The program `name` of the folder that this one is in.
std::string sibling(const std::string &name);

} // namespace tandem::bench

#endif
