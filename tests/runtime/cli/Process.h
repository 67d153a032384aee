//===- Process.h - runs a program as a user would -------------------------===//
//
// Starts a program with its output in pipes or on a terminal, and gives back
// what it wrote and how it ended.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_CLI_PROCESS_H
#define TANDEM_TESTS_RUNTIME_CLI_PROCESS_H

#include <cerrno>
#include <csignal>
#include <functional>
#include <poll.h>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace tandem::commands::test {

struct Ended {
  int code = -1; ///< exit code, or minus the signal that killed it
  std::string out, err;
};

struct Start {
  /// Runs in the child before the program: limits, another user, ...
  std::function<void()> prepare;
  /// Looks at stderr as it grows; returns a signal to send, once, or 0.
  std::function<int(pid_t child, const std::string &err)> watch;
  bool terminal = false; ///< stderr is a terminal
};

inline Ended runProgram(const std::string &program,
                        const std::vector<std::string> &arguments,
                        const Start &start = {}) {
  int out[2], err[2];
  Ended ended;
  if (::pipe(out) != 0 ||
      (start.terminal ? ::openpty(&err[0], &err[1], nullptr, nullptr, nullptr)
                      : ::pipe(err)) != 0)
    return ended;
  std::vector<char *> argv = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    for (int fd : {out[0], out[1], err[0], err[1]})
      ::close(fd);
    if (start.prepare)
      start.prepare();
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  struct pollfd fds[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string *texts[] = {&ended.out, &ended.err};
  bool sent = false;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds, 2, -1) < 0 && errno != EINTR)
      break;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || !fds[i].revents)
        continue;
      char buffer[4096];
      ssize_t got = ::read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, size_t(got));
      } else if (got == 0 || errno != EINTR) { // a terminal ends with EIO
        ::close(fds[i].fd);
        fds[i].fd = -1;
      }
    }
    if (int signal = start.watch && !sent ? start.watch(child, ended.err) : 0) {
      ::kill(child, signal);
      sent = true;
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ended;
}

} // namespace tandem::commands::test

#endif
