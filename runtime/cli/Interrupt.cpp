//===- Interrupt.cpp - Ctrl-C as a request --------------------------------===//
#include "runtime/cli/Interrupt.h"

namespace tandem::commands {
namespace {

volatile std::sig_atomic_t signalled = 0;

void handle(int) { signalled = 1; }

} // namespace

Interrupt::Interrupt() {
  signalled = 0;
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  ::sigaction(SIGINT, &action, &int_);
  ::sigaction(SIGTERM, &action, &term_);
  // Who started this in the background wants it to ignore Ctrl-C.
  if (int_.sa_handler == SIG_IGN)
    ::sigaction(SIGINT, &int_, nullptr);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &int_, nullptr);
  ::sigaction(SIGTERM, &term_, nullptr);
}

bool Interrupt::asked() { return signalled != 0; }

} // namespace tandem::commands
