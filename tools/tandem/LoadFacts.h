//===- LoadFacts.h - the facts of an artifact or a model ------------------===//
#ifndef TANDEM_TOOLS_TANDEM_LOADFACTS_H
#define TANDEM_TOOLS_TANDEM_LOADFACTS_H

#include "compiler/Compile.h"
#include "runtime/artifact/ArtifactReader.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

struct LoadedFacts {
  artifact::ArtifactReader reader;
  nlohmann::ordered_json facts; ///< ReportFacts.h
};

/// True for the name of an artifact.
bool isArtifact(std::string_view path);

/// Opens an artifact, for which `options` have no effect, or compiles a model.
Result<LoadedFacts> loadFacts(const std::string &path,
                              const CompileOptions &options);

/// Returns what a command prints of `json`: bytes that are no text, which a
/// name may have, are replaced.
std::string jsonText(const nlohmann::ordered_json &json);

} // namespace tandem::commands

#endif
