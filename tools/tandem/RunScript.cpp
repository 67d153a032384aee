//===- RunScript.cpp - a user's script, with a limit of time --------------===//
//
// LLVM's ExecuteAndWait ends the script alone when its time is over: what the
// script started, as a compiler that hangs, would stay for ever.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/RunScript.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace tandem::commands {

namespace {

/// Becomes the script, or says to `report` why not.
[[noreturn]] void become(const std::string &script, const std::string &argument,
                         int report) {
  ::setpgid(0, 0);
  // The reducer may be killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int nothing = ::open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream)
    ::dup2(nothing, stream);
  const char *words[] = {script.c_str(), argument.c_str(), nullptr};
  ::execv(words[0], const_cast<char **>(words));
  int error = errno;
  (void)!::write(report, &error, sizeof(error));
  ::_exit(127);
}

/// True if the process ended before the time was over.
bool waitUntil(pid_t child, std::chrono::steady_clock::time_point end,
               int &how) {
  auto pause = std::chrono::microseconds(200);
  while (true) {
    pid_t done = ::waitpid(child, &how, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR))
      return true;
    if (std::chrono::steady_clock::now() >= end)
      return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(20000));
  }
}

} // namespace

Result<ScriptEnd> runScript(const std::string &script,
                            const std::string &argument, int64_t seconds) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    return Status::failed(std::string("cannot make a pipe: ") +
                          std::strerror(errno));
  pid_t child = ::fork();
  if (child == 0)
    become(script, argument, report[1]);
  ::close(report[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && ::read(report[0], &error, sizeof(error)) <= 0)
    error = 0;
  ::close(report[0]);
  int how = 0;
  if (error) {
    if (child > 0)
      ::waitpid(child, &how, 0);
    return Status::usage(std::strerror(error));
  }
  ScriptEnd end;
  end.isTooLate = !waitUntil(
      child, std::chrono::steady_clock::now() + std::chrono::seconds(seconds),
      how);
  ::kill(-child, SIGKILL);
  if (end.isTooLate)
    ::waitpid(child, &how, 0);
  else
    end.isZero = WIFEXITED(how) && WEXITSTATUS(how) == 0;
  return end;
}

} // namespace tandem::commands
