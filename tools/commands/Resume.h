//===- Resume.h - is it the same training? --------------------------------===//
//
// What a checkpoint was trained with, against what `train --resume` is given. A
// training goes on as if it had not stopped only with the same model, data and
// order: another graph is an error, and so is what would leave out or repeat
// rows of a pass that was begun; between passes other data is said.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_RESUME_H
#define TANDEM_TOOLS_COMMANDS_RESUME_H

#include "tools/commands/Checkpoint.h"
#include "tools/commands/Dataset.h"
#include "tools/commands/Ranks.h"

namespace tandem::commands {

/// Returns what is trained here: the model, and digests of each array.
Origin originOf(const artifact::Manifest &manifest, const Dataset &data);

/// Returns what ranks compare of the rows that `option` gives: how many, and
/// what they hold. Of one process, nothing.
Facts factsOfRows(const std::string &option, const Dataset &data);

/// What `train --resume` is given beside the checkpoint.
struct ResumeWith {
  std::string path; ///< of the checkpoint
  Origin origin;
  int64_t rows = 0, batch = 0;
  bool hasRest = false;         ///< the rows that fill no batch are a step, too
  std::optional<uint64_t> seed; ///< if it is given
  bool noShuffle = false;
  int64_t accumulate = 1; ///< batches of an update
  bool hasSums = false;   ///< batches can wait for an update in the model
  bool force = false;     ///< differences of model and data are notes
};

/// Fails with Usage, naming all differences that are errors; adds to `notes`
/// those that are none.
Status compare(const Checkpoint &checkpoint, const ResumeWith &with,
               std::vector<std::string> &notes);

/// What a new training would lose by writing to `path`. Fails with Usage for a
/// checkpoint of another model, but with `force`; adds to `notes` how far one
/// of the same model is, which a training that does not resume begins anew.
/// Reads the file's header alone.
Status checkReplaced(const std::string &path, const Origin &origin,
                     bool resumes, bool force, std::vector<std::string> &notes);

/// Sets the optimizer's learning rate; fails where there is none.
Status setLearningRate(runtime::Model &model, double rate);

} // namespace tandem::commands

#endif
