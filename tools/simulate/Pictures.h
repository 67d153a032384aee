//===- Pictures.h - the timeline of a simulated step ----------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_PICTURES_H
#define TANDEM_TOOLS_SIMULATE_PICTURES_H

#include "tools/simulate/Step.h"

#include <string>

namespace tandem::simulate {

/// Returns the tasks as Chrome's trace format, which Perfetto and
/// chrome://tracing show: a process for each rank, a thread for each stream.
std::string toTrace(const StepResult &result);

/// Returns a picture: a line for each stream of each rank, time to the right.
std::string toSvg(const StepResult &result, const std::string &title);

} // namespace tandem::simulate

#endif
