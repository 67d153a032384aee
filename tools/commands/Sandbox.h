//===- Sandbox.h - a process that can do what its command needs -----------===//
//
// An artifact's code runs with the rights of its user. Before it is loaded,
// `enterSandbox` gives them up, for good and for all threads to come:
//
// - Landlock leaves the files that the command names: what it reads, and the
//   folders of what it writes, in which files are replaced by renaming; and, to
//   read, the system's libraries and what it says of the machine.
// - A filter of system calls (seccomp) leaves those that compute, read and
// write.
//   There is no network, no other program, no other process, and no change of
//   who may use a file.
//
// A call that the filter refuses ends the process with a message; a file that
// is not there for it is an error of the call that opens it.
//
// It is the tool that gives up rights: the runtime in another program never
// does.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_SANDBOX_H
#define TANDEM_TOOLS_COMMANDS_SANDBOX_H

#include "runtime/artifact/Status.h"

#include <string>
#include <vector>

namespace tandem::commands {

struct SandboxPaths {
  std::string artifact;             ///< for messages
  std::vector<std::string> inputs;  ///< files, and folders with all in them
  std::vector<std::string> outputs; ///< files, whose folders are written in
  /// Folders that files are made in; they are made where they are not there.
  std::vector<std::string> outputFolders;
};

/// Fails with Unsupported, naming it, where the system lacks what it takes, and
/// with Usage where an output would open the user's home. Other threads must
/// not run.
Status enterSandbox(const SandboxPaths &paths);

/// The half of it that leaves files.
Status restrictFiles(const SandboxPaths &paths);
/// The half of it that leaves system calls.
Status restrictCalls(const std::string &artifact);

} // namespace tandem::commands

#endif
