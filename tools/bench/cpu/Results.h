//===- Results.h - what was measured, as a table and as JSON --------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_RESULTS_H
#define TANDEM_TOOLS_BENCH_CPU_RESULTS_H

#include "tools/bench/cpu/Measure.h"

#include <nlohmann/json.hpp>

namespace tandem::bench {

/// A case on some threads. The first contender is Tandem.
struct Row {
  const Case *which;
  int threads;
  std::vector<Contender> contenders;
  std::string wrong;        ///< about Tandem's results, "" if they are right
  std::vector<Times> times; ///< empty if nothing was measured
};

/// The machine's rates on some threads.
nlohmann::ordered_json roofsJson(int threads, const Effort &effort);

nlohmann::ordered_json rowJson(const Row &row);

/// The table's lines, from the JSON.
std::string tableHead();
std::string tableLine(const nlohmann::ordered_json &row);
std::string roofLine(const nlohmann::ordered_json &roofs);

} // namespace tandem::bench

#endif
