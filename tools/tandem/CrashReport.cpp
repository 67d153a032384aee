//===- CrashReport.cpp - a crash of the compiler leaves a reproducer ------===//
//
// Nothing that prints a module may be called in a handler of a signal; but the
// process is lost anyhow, and what is gained is a file that repeats the crash.
// The file is written by a thread of its own, since the stack may be what is
// used up, and an alarm ends the process if a lock of the crashed thread stops
// that one.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CrashReport.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>
#include <unistd.h>

using namespace tandem;
using namespace tandem::commands;

static constexpr std::array signals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE,
                                       SIGABRT};
static std::array<struct sigaction, signals.size()> before;
static std::atomic<Reproducer *> active = nullptr;

static void report(Reproducer &reproducer, const std::string &where) {
  std::string text = "the compiler crashed";
  if (!where.empty())
    text += " in " + where;
  if (reproducer.isActive()) {
    auto said = reproducer.write();
    text += "; " + (said ? *said : said.status().message());
  }
  text += "; 'tandem bugreport' packs what is needed to find out why";
  std::fprintf(stderr, "tandem: error: %s\n", text.c_str());
}

/// The first thread that crashes writes; signals of others wait for its end.
static void handle(int signal) {
  Reproducer *reproducer = active.exchange(nullptr);
  if (!reproducer) {
    // Until the first one is done.
    for (;;)
      ::pause();
  }
  constexpr unsigned kSeconds = 60;
  ::alarm(kSeconds);
  std::string where = Reproducer::whatRuns();
  try {
    std::thread([&] { report(*reproducer, where); }).join();
  } catch (const std::exception &) { // no thread, or no memory for one
    std::fputs("tandem: error: the compiler crashed\n", stderr);
  }
  for (size_t i = 0; i < signals.size(); ++i)
    ::sigaction(signals[i], &before[i], nullptr);
  ::raise(signal);
}

CrashReport::CrashReport(Reproducer &reproducer) {
  Reproducer *none = nullptr;
  isActive_ = active.compare_exchange_strong(none, &reproducer);
  if (!isActive_)
    return;
  // A stack that is used up leaves no room for a handler.
  static std::array<char, 64 << 10> stack;
  stack_t own = {};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  ::sigaltstack(&own, nullptr);
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before[i]);
    // Who handles them already, as a sanitizer, has more to say.
    if (before[i].sa_handler == SIG_DFL)
      ::sigaction(signals[i], &action, nullptr);
  }
}

CrashReport::~CrashReport() {
  if (!isActive_)
    return;
  for (size_t i = 0; i < signals.size(); ++i)
    ::sigaction(signals[i], &before[i], nullptr);
  active = nullptr;
}
