//===- ProfileTrace.h - a profile as a timeline for Perfetto --------------===//
#ifndef TANDEM_TOOLS_TANDEM_PROFILETRACE_H
#define TANDEM_TOOLS_TANDEM_PROFILETRACE_H

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::commands {

/// Returns the launches of what `profile --json` prints as Chrome's trace
/// format, one after the other, each as long as its median: on the CPU a line
/// for each thread, with its own time in the kernel, else one of the device.
std::string profileTrace(const nlohmann::ordered_json &profile);

} // namespace tandem::commands

#endif
