//===- Show.h - what is in a file, for people and as JSON -----------------===//
#ifndef TANDEM_TOOLS_COMMANDS_SHOW_H
#define TANDEM_TOOLS_COMMANDS_SHOW_H

#include "runtime/artifact/ArtifactReader.h"

#include <string>

namespace tandem::commands {

/// Prints values, programs, memory, what is saved, kernels, sections. `path` is
/// the file, beside which other stages of a pipeline lie.
void showArtifact(const artifact::ArtifactReader &reader,
                  const std::string &path);
/// Prints the facts of the artifact (ArtifactFacts.h).
Status showArtifactAsJson(const artifact::ArtifactReader &reader);

/// Prints the mesh and its programs' collectives, with the bytes that a rank
/// sends in each; nothing where one rank runs alone.
void showCollectives(const artifact::Manifest &manifest);

/// Prints the stages of a pipeline, where each is and what it gives to the next
/// one, and how long a rank is idle; nothing for other models. Of stages that
/// lie beside stage 0, as `path`, all; else its own.
void showStages(const artifact::Manifest &manifest, const std::string &path);

/// Prints a table of the launches of a target of the kind `cuda`.
void showGrids(const artifact::Manifest &manifest);
/// Returns "16 x 8".
std::string extentsText(const std::vector<int64_t> &sizes);
/// Returns which library may compute the launch; empty: none.
const char *libraryOf(const artifact::Launch &launch);

/// True for a safetensors file or an index, whatever its name, and for what has
/// the name of one and is no artifact: that is said of it best by
/// `showCheckpoint`.
bool isShownAsCheckpoint(const std::string &path);

/// Prints the tensors and metadata of a safetensors file or an index, and where
/// training stands, if it is a checkpoint.
Status showCheckpoint(const std::string &path, bool asJson);

} // namespace tandem::commands

#endif
