//===- Sandbox.cpp - a process that can do what its command needs ---------===//
//
// The order: threads and sockets that are there are looked at, then files,
// since their rules are made of calls that the filter refuses, then calls.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Sandbox.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::commands {

/// Closes connections that whoever started the process has left open in it.
static void closeSockets() {
  for (int fd = 3, most = int(::sysconf(_SC_OPEN_MAX)); fd < most; ++fd) {
    struct stat facts;
    if (::fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode))
      ::close(fd);
    if (fd == 1023) // those above it are no shell's
      break;
  }
}

Status enterSandbox(const SandboxPaths &paths) {
  // Landlock is of a thread and those that it starts.
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/self/task", error), end;
  if (error || std::distance(threads, end) != 1)
    return Status::failed("--sandbox: expected one thread before a model is "
                          "loaded" +
                          (error ? ": " + error.message() : std::string()));
  closeSockets();
  // Neither half can be entered by a process that programs could give rights.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Status::failed(std::string("--sandbox: cannot give up rights: ") +
                          std::strerror(errno));
  if (Status status = restrictFiles(paths); !status)
    return status;
  return restrictCalls(paths.artifact);
}

} // namespace tandem::commands
