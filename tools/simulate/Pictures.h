//===- Pictures.h - the timeline of a simulated step ----------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_PICTURES_H
#define TANDEM_TOOLS_SIMULATE_PICTURES_H

#include "tools/simulate/Step.h"

#include <map>
#include <string>

namespace tandem::simulate {

/// The streams that a rank has tasks on, with their names in pictures.
std::map<int, std::string> streamsOf(const RankTasks &tasks);
/// "rank 0 (stage 0)"; "every rank" where all are alike.
std::string nameOfRank(const StepResult &result, size_t rank);

/// Returns the tasks as Chrome's trace format, which Perfetto and
/// chrome://tracing show: a process for each rank, a thread for each stream, an
/// arrow for each task that another stream waits for.
std::string toTrace(const StepResult &result);

/// Returns a picture: a line for each stream of each rank, time to the right.
std::string toSvg(const StepResult &result, const std::string &title);

} // namespace tandem::simulate

#endif
