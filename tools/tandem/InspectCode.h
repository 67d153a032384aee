//===- InspectCode.h - the code of a GPU that is in an artifact -----------===//
#ifndef TANDEM_TOOLS_TANDEM_INSPECTCODE_H
#define TANDEM_TOOLS_TANDEM_INSPECTCODE_H

#include "runtime/artifact/ArtifactReader.h"

#include <map>
#include <string>

namespace tandem::commands {

/// Prints the kernels' PTX; if `kernel` is not empty, that of one, with what
/// all share: a text that can be assembled.
Status printPtx(const artifact::ArtifactReader &reader,
                const std::string &kernel);

/// Returns the PTX of the chosen target's kernels by their symbols.
std::map<std::string, std::string>
kernelPtx(const artifact::ArtifactReader &variant);

/// Prints what each kernel takes of a multiprocessor, as ptxas reports it.
Status printResources(const artifact::ArtifactReader &reader);

} // namespace tandem::commands

#endif
