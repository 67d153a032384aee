//===- Options.h - what bench-cpu is asked for ----------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_OPTIONS_H
#define TANDEM_TOOLS_BENCH_CPU_OPTIONS_H

#include "tools/bench/cpu/Measure.h"

namespace tandem::bench {

struct BenchOptions {
  bool help = false, list = false, json = false, check = false, alone = false;
  std::string jsonFile, filter, target, openBlas, xsmm;
  std::vector<std::string> dnnl = {""};
  std::vector<int> threads;
  Effort effort;
  std::string error; ///< what is wrong with the arguments, or ""

  /// Returns whether a case is asked for.
  bool wants(const std::string &name) const;
};

BenchOptions parseOptions(int argc, char **argv);
const char *helpText();

} // namespace tandem::bench

#endif
