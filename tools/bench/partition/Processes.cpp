//===- Processes.cpp - other programs, and the memory that they take ------===//
#include "tools/bench/partition/Processes.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tandem;

extern char **environ;

static Status failure(const std::vector<std::string> &words,
                      const std::string &why) {
  return Status::failed("'" + words[0] + "': " + why);
}

Result<bench::Finished> bench::run(const std::vector<std::string> &words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return failure(words, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  int error = posix_spawnp(&child, arguments[0], &actions, nullptr,
                           arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    return failure(words, std::strerror(error));
  }
  Finished finished;
  char buffer[4096];
  for (;;) {
    ssize_t bytes = read(ends[0], buffer, sizeof buffer);
    if (bytes > 0)
      finished.output.append(buffer, static_cast<size_t>(bytes));
    else if (bytes == 0 || errno != EINTR)
      break;
  }
  close(ends[0]);
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return failure(words,
                   WIFEXITED(status)
                       ? "exit code " + std::to_string(WEXITSTATUS(status))
                       : "ended by a signal");
  finished.peakBytes = int64_t(usage.ru_maxrss) * 1024;
  return finished;
}

std::string bench::sibling(const std::string &name) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string self(path, length > 0 ? static_cast<size_t>(length) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}
