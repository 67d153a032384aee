//===- Interrupt.h - Ctrl-C as a request ----------------------------------===//
//
// While an Interrupt lives, the first SIGINT, SIGTERM or SIGHUP only sets a
// flag, which long work looks at between steps; a SIGINT or SIGTERM after it
// ends the process as usual. A SIGHUP after it does not: when a terminal
// closes, the kernel and the shell both send one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_INTERRUPT_H
#define TANDEM_TOOLS_COMMANDS_INTERRUPT_H

#include <csignal>

namespace tandem::commands {

class Interrupt {
public:
  Interrupt();
  Interrupt(const Interrupt &) = delete;
  ~Interrupt();

  /// True once a signal has come.
  static bool asked();
  /// The same as a signal.
  static void ask();

private:
  struct sigaction old_[3];
};

} // namespace tandem::commands

#endif
