//===- Interrupt.h - Ctrl-C as a request ----------------------------------===//
//
// While an Interrupt lives, the first SIGINT or SIGTERM only sets a flag, which
// long work looks at between steps; the second one ends the process as usual.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CLI_INTERRUPT_H
#define TANDEM_RUNTIME_CLI_INTERRUPT_H

#include <csignal>

namespace tandem::commands {

class Interrupt {
public:
  Interrupt();
  Interrupt(const Interrupt &) = delete;
  ~Interrupt();

  /// True once a signal has come.
  static bool asked();

private:
  struct sigaction int_, term_;
};

} // namespace tandem::commands

#endif
