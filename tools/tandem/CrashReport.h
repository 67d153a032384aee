//===- CrashReport.h - a crash of the compiler leaves a reproducer --------===//
#ifndef TANDEM_TOOLS_TANDEM_CRASHREPORT_H
#define TANDEM_TOOLS_TANDEM_CRASHREPORT_H

#include "compiler/Reproducer.h"

namespace tandem::commands {

/// While it lives, a signal that ends the process for a fault of its own
/// (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) first writes the reproducer, if
/// something is being compiled, and says so on stderr; then the signal does
/// what it did before. One for the process at a time; others do nothing.
class CrashReport {
public:
  explicit CrashReport(Reproducer &reproducer);
  ~CrashReport();
  CrashReport(const CrashReport &) = delete;

private:
  bool isActive_ = false;
};

} // namespace tandem::commands

#endif
