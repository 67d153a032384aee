//===- CountProgress.cpp - how far something is, on stderr ----------------===//
#include "tools/commands/CountProgress.h"

#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <cstdio>
#include <unistd.h>
#include <utility>

namespace tandem::commands {

CountProgress::CountProgress(std::string unit, int64_t all)
    : unit_(std::move(unit)), all_(all),
      terminal_(sayings() == stderr && ::isatty(STDERR_FILENO) == 1) {}

double CountProgress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void CountProgress::show(int64_t done) {
  auto now = Clock::now();
  std::FILE *to = sayings();
  if (!to || now - shown_ < (terminal_ ? std::chrono::milliseconds(100)
                                       : std::chrono::milliseconds(10000)))
    return;
  shown_ = now;
  std::string left;
  if (done)
    left = timeText(seconds() / double(done) * double(all_ - done)) + " left";
  std::fprintf(to, "%s%s %lld/%lld  %s%s", terminal_ ? "\r\x1b[K" : "",
               unit_.c_str(), static_cast<long long>(done),
               static_cast<long long>(all_), left.c_str(),
               terminal_ ? "" : "\n");
  std::fflush(to);
  isOnLine_ = terminal_;
}

void CountProgress::clear() {
  if (isOnLine_)
    std::fputs("\r\x1b[K", stderr);
  isOnLine_ = false;
}

} // namespace tandem::commands
