//===- SaveShards.h - all ranks save together, each its own file ----------===//
//
// Each rank writes the pieces that it has into a file of its own, all at the
// same time; none has more of a tensor in memory than its piece. What several
// ranks have alike is written by one of them, so that files become equally
// large. When all are on the disk, the first rank replaces the index
// (IndexFiles.h). A rank that fails or dies before that leaves the earlier
// checkpoint as it was.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CHECKPOINT_SAVESHARDS_H
#define TANDEM_RUNTIME_CHECKPOINT_SAVESHARDS_H

#include "runtime/checkpoint/Variables.h"

namespace tandem::checkpoint {

/// Saves all parameters and states of `model` to the index `path`; all ranks
/// call it, with the same metadata. Without several ranks there is one file. It
/// fails on all ranks or on none, but for ranks that are gone.
Status saveShards(const runtime::Model &model, const std::string &path,
                  const std::map<std::string, std::string> &metadata);

/// The same of a model in stages: `models` are those of this rank. What several
/// stages have is written by the ranks of the first of these. `line` has a rank
/// of each group, and `world` all.
Status saveStages(std::span<const runtime::Model> models,
                  comm::Communicator &line, comm::Communicator &world,
                  const std::string &path,
                  const std::map<std::string, std::string> &metadata);

} // namespace tandem::checkpoint

#endif
