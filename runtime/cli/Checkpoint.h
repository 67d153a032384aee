//===- Checkpoint.h - parameters and training state in safetensors files --===//
//
// A checkpoint is every parameter and state of a model under its name, and
// where training stands as metadata: what is needed to go on as if it had never
// stopped.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CLI_CHECKPOINT_H
#define TANDEM_RUNTIME_CLI_CHECKPOINT_H

#include "runtime/Model.h"

namespace tandem::commands {

/// Where training stands: `step` of `epoch` is the next one to do.
struct Position {
  int64_t epoch = 0;      ///< complete passes over the data
  int64_t step = 0;       ///< steps done in the pass that follows
  int64_t totalSteps = 0; ///< steps done in all
  uint64_t seed = 0;
  int64_t rows = 0, batch = 0;
  bool shuffle = true;
};

/// Overwrites the parameters, and those states that the file `path` has. Fails,
/// naming all problems, unless it has every parameter and every state that is
/// neither an optimizer's own nor the seed, with the right shapes; then nothing
/// is changed.
Status loadParameters(runtime::Model &model, const std::string &path);

/// Restores every parameter and state, the optimizer's too, and the position.
Result<Position> loadCheckpoint(runtime::Model &model, const std::string &path);

Status saveCheckpoint(const runtime::Model &model, const Position &position,
                      const std::string &path);

/// Returns why the file `path` could not be replaced, before there is anything
/// to write.
Status checkWritable(const std::string &path);

} // namespace tandem::commands

#endif
