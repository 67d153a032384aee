//===- BugreportFiles.h - what a report of a bug is made of ---------------===//
#ifndef TANDEM_TOOLS_TANDEM_BUGREPORTFILES_H
#define TANDEM_TOOLS_TANDEM_BUGREPORTFILES_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::commands {

struct CompileFlags;

struct RunOutcome {
  int code = 0;     ///< below 0: a signal, or it was ended
  std::string text; ///< "ended with exit code 1"
};

/// Runs this program with `words` as its command line for at most `seconds`;
/// what it prints goes to the file `output`. Fails where this process was asked
/// to end.
Result<RunOutcome> runTandem(const std::vector<std::string> &words,
                             const std::string &output, int64_t seconds);
/// Returns the words of a command line, quoted as for a shell.
std::vector<std::string> splitWords(const std::string &line);

/// Writes the model in `path` as a module to `output`, in a process of its own
/// that may take `seconds`; constants of more than 1 KiB are zeros unless
/// `withConstants`. `notes` gets what was left out, or why there is no module.
/// Fails where this process was asked to end.
Status writeModel(const std::string &path, const CompileFlags &flags,
                  const std::string &output, bool withConstants,
                  int64_t seconds, std::string &notes);

struct ReportFile {
  std::string name; ///< within the folder
  uint64_t bytes = 0;
};
/// Returns the files of a folder and those below it, by name.
Result<std::vector<ReportFile>> filesIn(const std::string &folder);
/// Packs them as the folder `root` of the archive `output` (.tar.gz), without
/// times and owners.
Status pack(const std::string &folder, const std::vector<ReportFile> &files,
            const std::string &output, const std::string &root);

/// Copies them into the folder `output`.
Status copyFiles(const std::string &folder,
                 const std::vector<ReportFile> &files,
                 const std::string &output);

} // namespace tandem::commands

#endif
