//===- Ranks.h - the processes that run one command together --------------===//
//
// An artifact for a mesh is run by as many processes, which a launcher started
// with the same command line: `mpirun -n 4 tandem-run train x.tdm ...`. Each is
// a rank and does the same; rank 0 alone writes files and says how it goes.
//
// A rank that fails tells the others, which end with it. What ranks decide by
// themselves (an interrupt) they decide together.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_RANKS_H
#define TANDEM_TOOLS_COMMANDS_RANKS_H

#include "runtime/model/Model.h"
#include "tools/commands/Options.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::commands {

/// How the ranks of a command behave.
struct RankOptions {
  std::optional<int64_t> timeout;
  bool noOverlap = false;
  std::string logs;

  void declare(OptionTable &options);
};

/// Connects the ranks that the artifact is for, and gives them to the model.
/// Fails with Usage where there are others, or options without effect.
Status openRanks(runtime::Model &model, const std::string &artifact,
                 const RankOptions &options);

/// Connects as many ranks as the mesh has, which are several, and returns them;
/// with `hasSpare` a processor is free to communicate beside computation. They
/// are processes of MPI; of a model on a GPU also those that a launcher as
/// torchrun started, which NCCL connects.
Result<std::shared_ptr<comm::Communicator>>
connectRanks(const comm::Mesh &mesh, bool hasSpare, const RankOptions &options,
             bool isOnHost = true);

/// True unless this process is another rank than the first.
bool isFirstRank();
/// How many ranks run the command.
int64_t rankCount();

/// What ranks must have alike: a name for people, and a value.
using Facts = std::vector<std::pair<std::string, std::string>>;
/// Fails with Usage on all ranks, naming what differs, unless all gave the
/// same. All ranks call it.
Status agree(const Facts &facts);
/// Returns what ranks compare of a file of tensors, of an index or of the
/// folder of one: the digest of its bytes, where an index has the checksums of
/// the others. Empty if there is no path, or one process alone.
std::string digestForRanks(const std::string &path);

/// True on all ranks if it is on one of them. All ranks call it.
Result<bool> onAnyRank(bool here);

/// Returns the texts of all ranks, in their order; of one process its own. All
/// ranks call it.
Result<std::vector<std::string>> textsOfRanks(const std::string &text);

/// Returns the texts of all ranks as one: "rank 1: ..." of each that has one,
/// "all ranks: ..." where all have the same. Of one process, its own. All ranks
/// call it.
Result<std::string> textOfRanks(const std::string &text);

/// Why work ends before it is done.
enum class Stop : uint8_t { No, Time, Signal };
/// The same on all ranks, whose clock or signal (Interrupt.h) it may be. All
/// ranks call it.
Result<Stop> whyStop(bool isTimeUp);
/// True on all ranks once a signal has come to one.
Result<bool> isInterrupted();

/// Returns how many threads a process computes with where nobody said: its part
/// of the processors of a machine that it shares with other ranks.
int threadsOfRank();

/// Returns the number of the GPU of this process where nobody said: its number
/// on this machine, unless the launcher shows it one GPU alone.
int deviceOfRank();

/// Where progress and notes go: stderr; the log of a rank; or nowhere, null.
std::FILE *sayings();

/// Returns the message for stderr of a command that ended so: it says whose it
/// is, and is empty where the first rank has the same.
std::string messageOfRank(const Status &status);
/// Ends the ranks of a command that ended so; others fail where this one did.
/// Called once, when everything is printed: a launcher ends all processes when
/// the first one ends with an error.
void endRanks(const Status &status);

} // namespace tandem::commands

#endif
