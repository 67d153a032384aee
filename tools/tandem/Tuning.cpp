//===- Tuning.cpp - --tune on the command line ----------------------------===//
#include "tools/tandem/Tuning.h"

#include <cstdio>
#include <unistd.h>

using namespace tandem;
using namespace tandem::commands;

void Tuning::attach(CompileOptions &options) {
  options.timer = &timer_;
  options.tuneProgress = [this](const TuneReport &report) { show(report); };
}

void Tuning::show(const TuneReport &report) {
  report_ = report;
  if (!isatty(STDERR_FILENO))
    return;
  std::fprintf(stderr, "\r\033[Ktuned %d of %d kernels: %.60s",
               report.cached + report.measured, report.kernels,
               report.last.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Tuning::finish() {
  if (shown_)
    std::fputs("\r\033[K", stderr);
  shown_ = false;
  if (!report_.measured)
    return;
  std::fprintf(
      stderr,
      "tuned %d kernels (%d more were known, %d are left): %d with "
      "other schedules, %.2fx as fast in the sum of their launches\n",
      report_.measured, report_.cached, report_.left(), report_.changed,
      report_.seconds > 0 ? report_.modelSeconds / report_.seconds : 1.0);
}
