//===- Interrupt.cpp - Ctrl-C as a request --------------------------------===//
#include "tools/commands/Interrupt.h"

#include <initializer_list>

namespace tandem::commands {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t signalled = 0;

void handle(int) {
  signalled = 1;
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction now;
    // One that was ignored before stays so.
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == handle)
      std::signal(signal, SIG_DFL);
  }
}

} // namespace

Interrupt::Interrupt() {
  signalled = 0;
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i) {
    ::sigaction(signals[i], &action, &old_[i]);
    // Who started this in the background, or with nohup, wants it to go on.
    if (old_[i].sa_handler == SIG_IGN)
      ::sigaction(signals[i], &old_[i], nullptr);
  }
}

Interrupt::~Interrupt() {
  for (int i = 0; i < 3; ++i)
    ::sigaction(signals[i], &old_[i], nullptr);
}

void Interrupt::ask() { signalled = 1; }

bool Interrupt::asked() { return signalled != 0; }

} // namespace tandem::commands
