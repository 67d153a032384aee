//===- RunProcess.cpp - a program that is run beside, with limits ---------===//
//
// LLVM's ExecuteAndWait ends the program alone when its time is over: what the
// program started, as a compiler that hangs, would stay for ever.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/RunProcess.h"

#include "tools/commands/Interrupt.h"

#include <algorithm>
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

/// In the new process: a group of its own, which ends with its parent.
void leaveGroup() {
  ::setpgid(0, 0);
  // The parent may be killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/// Becomes the program, or says to `report` why not.
[[noreturn]] void become(const std::string &path,
                         const std::vector<std::string> &words,
                         const std::string &output, int report) {
  leaveGroup();
  int nothing = ::open("/dev/null", O_RDWR);
  int out = output.empty()
                ? nothing
                : ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (out >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    std::vector<char *> pointers;
    for (const std::string &word : words)
      pointers.push_back(const_cast<char *>(word.c_str()));
    pointers.push_back(nullptr);
    ::execv(path.c_str(), pointers.data());
  }
  int error = errno;
  (void)!::write(report, &error, sizeof(error));
  ::_exit(127);
}

/// Waits for `child`, and ends it and its group when it is time.
ProcessEnd waitFor(pid_t child, int64_t seconds) {
  const auto last =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  auto pause = std::chrono::microseconds(200);
  ProcessEnd end;
  int how = 0;
  while (true) {
    pid_t done = ::waitpid(child, &how, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR))
      break;
    end.isStopped = Interrupt::asked();
    end.isTooLate = !end.isStopped && std::chrono::steady_clock::now() >= last;
    if (end.isStopped || end.isTooLate)
      break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(20000));
  }
  ::kill(-child, SIGKILL);
  if (end.isStopped || end.isTooLate) {
    // It may not have left this process's group yet.
    ::kill(child, SIGKILL);
    ::waitpid(child, &how, 0);
  } else if (WIFSIGNALED(how)) {
    end.signal = WTERMSIG(how);
  } else {
    end.code = WEXITSTATUS(how);
  }
  return end;
}

} // namespace

Result<ProcessEnd> runProcess(const std::string &path,
                              const std::vector<std::string> &words,
                              const std::string &output, int64_t seconds) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    return Status::failed(std::string("cannot make a pipe: ") +
                          std::strerror(errno));
  pid_t child = ::fork();
  if (child == 0)
    become(path, words, output, report[1]);
  ::close(report[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && ::read(report[0], &error, sizeof(error)) <= 0)
    error = 0;
  ::close(report[0]);
  if (error) {
    if (child > 0)
      ::waitpid(child, nullptr, 0);
    return Status::usage(std::strerror(error));
  }
  return waitFor(child, seconds);
}

Result<ProcessEnd> runCopy(const std::function<int()> &function,
                           int64_t seconds) {
  pid_t child = ::fork();
  if (child < 0)
    return Status::failed(std::string("cannot start a process: ") +
                          std::strerror(errno));
  if (child == 0) {
    leaveGroup();
    ::_exit(function());
  }
  return waitFor(child, seconds);
}

} // namespace tandem::commands
