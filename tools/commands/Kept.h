//===- Kept.h - earlier checkpoints of a training -------------------------===//
//
// Beside F.safetensors, which is replaced, the last ones as F-STEP.safetensors.
// What is removed is what this model's training wrote: a file of such a name
// that does not hold a checkpoint of this graph after that step stays.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_KEPT_H
#define TANDEM_TOOLS_COMMANDS_KEPT_H

#include "tools/commands/Checkpoint.h"

namespace tandem::commands {

/// Keeps the checkpoint `path`, of `graph` after `step`, under a name of its
/// own, and removes all such but the last `count`.
Status keepCheckpoint(const std::string &path, const std::string &graph,
                      int64_t step, int64_t count);

} // namespace tandem::commands

#endif
