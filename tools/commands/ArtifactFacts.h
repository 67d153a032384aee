//===- ArtifactFacts.h - what is in an artifact, as JSON ------------------===//
//
// The object that `inspect --json` prints; docs/INSPECT_JSON.md describes it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_ARTIFACTFACTS_H
#define TANDEM_TOOLS_COMMANDS_ARTIFACTFACTS_H

#include "runtime/artifact/ArtifactReader.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

/// The version of the object. It grows where a field goes, or means another
/// thing; fields come without it.
inline constexpr int factsVersion = 1;

/// Returns the manifests of all targets, and the sections of the file.
Result<nlohmann::ordered_json>
artifactFacts(const artifact::ArtifactReader &reader);

} // namespace tandem::commands

#endif
