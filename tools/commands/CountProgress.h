//===- CountProgress.h - how far something is, on stderr ------------------===//
//
// What is done, how much there is, and the time that is left: on a terminal one
// line that is rewritten, elsewhere a line for each ten seconds.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_COUNTPROGRESS_H
#define TANDEM_TOOLS_COMMANDS_COUNTPROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace tandem::commands {

class CountProgress {
public:
  /// `unit`: "row".
  CountProgress(std::string unit, int64_t all);
  ~CountProgress() { clear(); }

  /// Says that `done` of all are done, if it is time to say so.
  void show(int64_t done);
  /// Removes the rewritten line, before something else is printed.
  void clear();
  /// Returns the seconds since the beginning.
  double seconds() const;

private:
  using Clock = std::chrono::steady_clock;
  std::string unit_;
  int64_t all_;
  bool terminal_, isOnLine_ = false;
  Clock::time_point begin_ = Clock::now(), shown_ = begin_;
};

} // namespace tandem::commands

#endif
