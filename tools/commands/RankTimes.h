//===- RankTimes.h - how long the calls of several ranks take -------------===//
//
// A call takes as long as on the rank that takes longest. A rank that is done
// earlier waits for the others; the time that the least waiting rank spends
// with them is that of communication itself, as far as no computation hides it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_RANKTIMES_H
#define TANDEM_TOOLS_COMMANDS_RANKTIMES_H

#include "tools/commands/Timing.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

struct RankTimes {
  /// One rank: medians over its calls, in seconds, and its memory.
  struct One {
    double call = 0, together = 0;
    int64_t peak = 0;     ///< as the runtime counts it
    int64_t resident = 0; ///< of the process, with its libraries
  };
  std::vector<One> ranks;
  std::vector<double> sorted; ///< of each call the longest
  double exposed = 0;         ///< median over calls of the least `together`

  /// The most memory of a rank.
  int64_t peak() const;
  /// The rows of a table for people: of all, and one for each rank.
  std::vector<std::vector<std::string>> rows() const;
  /// Adds what stands in the rows.
  void addTo(nlohmann::json &json) const;
};

/// The most memory that this process had at once, in bytes.
int64_t residentPeak();

/// Returns what all ranks measured; `peak` is the memory of this one. All ranks
/// call it, and have made as many calls.
Result<RankTimes> timesOfRanks(const Timing &own, int64_t peak);

} // namespace tandem::commands

#endif
