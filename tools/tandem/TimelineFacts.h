//===- TimelineFacts.h - when what of a step is expected to run -----------===//
#ifndef TANDEM_TOOLS_TANDEM_TIMELINEFACTS_H
#define TANDEM_TOOLS_TANDEM_TIMELINEFACTS_H

#include "runtime/artifact/ArtifactReader.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::commands {

/// Returns for each manifest the simulated timeline of a step, as
/// docs/INSPECT_JSON.md describes `timeline`. `path` is the file of the
/// artifact, beside which the other stages of a pipeline lie; empty if there is
/// none yet.
nlohmann::ordered_json timelineFacts(const artifact::ArtifactReader &reader,
                                     const std::string &path);

} // namespace tandem::commands

#endif
