//===- Report.h - what the emulator found and saw -------------------------===//
//
// Errors of the program that drives the device (a missing wait, a use after
// free, ...), the log of its calls, and counts of them. Texts are the same in
// every run: streams and events have the numbers of their creation, memory that
// of its allocation.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_REPORT_H
#define TANDEM_CUDA_EMULATOR_REPORT_H

#include "cuda/emulator/Control.h"
#include "cuda/emulator/Operation.h"

#include <deque>
#include <set>
#include <string>

namespace tandem::emulator {

class Report {
public:
  /// Adds an error. Only the first thousand texts are kept.
  void error(std::string text);
  /// Adds a race between two operations; the same pair is counted once.
  void race(const Origin &second, bool secondWrites, const Origin &first,
            bool firstWrote, const std::string &place);

  uint64_t errorCount() const { return found; }
  /// Returns text number `index`, or null. It stays until `clear`.
  const char *errorText(size_t index) const;

  void setLogging(bool on) { logging = on; }
  bool isLogging() const { return logging; }
  void log(std::string line);
  size_t logSize() const { return lines.size(); }
  const char *logLine(size_t index) const;
  void clearLog() { lines.clear(); }

  void clearErrors();
  /// Forgets errors, log and counts.
  void clear();

  TandemEmulatorCounts counts = {};

private:
  uint64_t found = 0;
  std::deque<std::string> errors; // texts do not move
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  bool logging = false;
  std::deque<std::string> lines;
};

} // namespace tandem::emulator

#endif
