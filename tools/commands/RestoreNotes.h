//===- RestoreNotes.h - what goes on in another way, said -----------------===//
//
// A checkpoint of an artifact that was compiled otherwise may lack what this
// one has, have what this one does not keep, or hold other numbers than those
// that this one was compiled with. A training goes on all the same, and says
// so.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_RESTORENOTES_H
#define TANDEM_TOOLS_COMMANDS_RESTORENOTES_H

#include "runtime/io/TensorFiles.h"
#include "tools/commands/RateGroups.h"

namespace tandem::commands {

/// The params that a training froze which had states for others: theirs begin
/// anew.
std::vector<std::string_view> unfrozen(const io::TensorFiles &files,
                                       const artifact::Manifest &manifest);

/// Says what of a training the files lack that begins anew for that.
void noteFresh(const io::TensorFiles &files, const artifact::Manifest &manifest,
               std::vector<std::string> &notes);

/// Says what of a training the files have that the artifact does not keep.
void noteLeft(const io::TensorFiles &files, const artifact::Manifest &manifest,
              std::vector<std::string> &notes);

/// Returns the number that a state was compiled with; empty: it is none.
std::string compiledNumber(const artifact::Value &value);

/// Returns what to say of each learning rate of `model`, from the checkpoint
/// `path`, that is not the one which it was compiled with; with `isSet`, not of
/// the optimizer's own.
std::vector<std::string> rateNotes(const runtime::Model &model,
                                   const RateGroups &groups, bool isSet,
                                   const std::string &path);

/// The same of the numbers that adapters are multiplied with.
std::vector<std::string> adapterNotes(const runtime::Model &model,
                                      const std::string &path);

} // namespace tandem::commands

#endif
