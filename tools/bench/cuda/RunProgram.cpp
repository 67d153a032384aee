//===- RunProgram.cpp - a program that may hang ---------------------------===//
#include "tools/bench/cuda/Steps.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tandem::gpu;
using Clock = std::chrono::steady_clock;

/// The exit code of a shell, too, for what there is not.
static constexpr int missing = 127;

static bool redirect(const std::string &path, int descriptor) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  return file >= 0 && ::dup2(file, descriptor) >= 0;
}

/// In the child: becomes the program.
[[noreturn]] static void become(const std::vector<std::string> &words,
                                const std::string &outputFile,
                                const std::string &errorFile) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // a run that is cut leaves nothing behind
  int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  if (!redirect(outputFile, 1) || !redirect(errorFile, 2))
    ::_exit(missing);
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "cannot run '%s': %s\n", arguments[0],
               std::strerror(errno));
  std::fflush(stderr);
  ::_exit(missing);
}

static double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Waits until the child has ended; false after `limit` seconds.
static bool waitFor(pid_t child, double limit, int &status) {
  Clock::time_point begin = Clock::now();
  while (true) {
    pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child)
      return true;
    if (since(begin) >= limit)
      return false;
    timespec pause = {0, 5000000};
    ::nanosleep(&pause, nullptr);
  }
}

Ended tandem::gpu::runProgram(const std::vector<std::string> &words,
                              double limit, const std::string &outputFile,
                              const std::string &errorFile) {
  Ended ended;
  Clock::time_point begin = Clock::now();
  pid_t child = ::fork();
  if (child < 0) {
    ended.how = Ended::How::Missing;
    return ended;
  }
  if (child == 0)
    become(words, outputFile, errorFile);
  ::setpgid(child, child); // whoever comes first
  int status = 0;
  if (!waitFor(child, limit, status)) {
    ended.how = Ended::How::TimeOut;
    ::kill(-child, SIGKILL);
    // One that the driver holds cannot be killed: the others go on.
    ended.isStuck = !waitFor(child, 5, status);
  } else if (WIFSIGNALED(status)) {
    ended.how = Ended::How::Signal;
    ended.code = WTERMSIG(status);
  } else {
    ended.code = WEXITSTATUS(status);
    if (ended.code == missing)
      ended.how = Ended::How::Missing;
  }
  ::kill(-child, SIGKILL); // what it started and left
  ended.seconds = since(begin);
  return ended;
}
