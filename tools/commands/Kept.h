//===- Kept.h - earlier checkpoints of a training -------------------------===//
//
// Beside F.safetensors, which is replaced, the last ones as F-STEP.safetensors.
// What is removed is what this model's training wrote: a file of such a name
// that does not hold a checkpoint of this graph after that step stays, and so
// does the one that the training goes on from.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_KEPT_H
#define TANDEM_TOOLS_COMMANDS_KEPT_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::commands {

/// Returns the step of which `file` would be the kept checkpoint of `path`, by
/// its own name or by one that its links lead to; nothing if it is none.
/// Another name of the same inode is none: what is kept is replaced as a name,
/// and `path` itself is often the same inode as the last one.
std::optional<int64_t> keptStep(const std::string &path,
                                const std::string &file);

/// Keeps the checkpoint `path`, of `graph` after `step`, under a name of its
/// own, and removes all such but the last `count` and `spared` (empty: none).
Status keepCheckpoint(const std::string &path, const std::string &graph,
                      int64_t step, int64_t count, const std::string &spared);

} // namespace tandem::commands

#endif
