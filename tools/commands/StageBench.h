//===- StageBench.h - how fast a model in stages is trained ---------------===//
#ifndef TANDEM_TOOLS_COMMANDS_STAGEBENCH_H
#define TANDEM_TOOLS_COMMANDS_STAGEBENCH_H

#include "runtime/artifact/ArtifactReader.h"
#include "tools/commands/Inputs.h"
#include "tools/commands/Timing.h"

namespace tandem::commands {

/// What `bench` is asked of a model in stages.
struct StageBenchOptions {
  const ModelOptions &model;
  const std::vector<std::string> &inputs;
  Repeats repeats;
  std::optional<int64_t> batches; ///< for an update; else the stages' number
  bool json = false;
};

/// Times updates of the stages of which `first`, the file of the options, is
/// the first, and prints on rank 0 how long they take and for how much of it
/// ranks are idle. All ranks call it.
Status benchStages(const StageBenchOptions &options,
                   const artifact::ArtifactReader &first);

} // namespace tandem::commands

#endif
