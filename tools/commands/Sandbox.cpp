//===- Sandbox.cpp - a process that can do what its command needs ---------===//
//
// The order: threads that are there are looked at, then files are restricted,
// since their rules are made of calls that the filter refuses, sockets are
// closed, then calls are restricted.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Sandbox.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace tandem::commands {

/// Closes connections that whoever started the process has left open in it, but
/// for its standard ones.
static Status closeSockets() {
  std::vector<int> open; // not closed while the list is read, which is one
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end;
       !error && at != end; at.increment(error))
    open.push_back(std::stoi(at->path().filename().string()));
  if (error)
    return Status::failed("--sandbox: cannot see which files are open: " +
                          error.message());
  for (int fd : open) {
    struct stat facts;
    if (fd > 2 && ::fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode))
      ::close(fd);
  }
  return Status::success();
}

Status enterSandbox(const SandboxPaths &paths) {
  // Landlock is of a thread and those that it starts.
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/self/task", error), end;
  if (error || std::distance(threads, end) != 1)
    return Status::failed("--sandbox: expected one thread before a model is "
                          "loaded" +
                          (error ? ": " + error.message() : std::string()));
  // Neither half can be entered by a process that programs could give rights.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Status::failed(std::string("--sandbox: cannot give up rights: ") +
                          std::strerror(errno));
  if (Status status = restrictFiles(paths); !status)
    return status;
  // Behind those that asking for the user's home may have opened.
  if (Status status = closeSockets(); !status)
    return status;
  return restrictCalls(paths.artifact);
}

} // namespace tandem::commands
