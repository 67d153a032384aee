//===- Progress.h - how training goes, on stderr --------------------------===//
//
// On a terminal one line that is rewritten at most ten times a second;
// elsewhere one line for each report interval. Both say where training is, the
// mean loss since the last line (terminal: the last loss), samples a second and
// the time that is left.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_PROGRESS_H
#define TANDEM_TOOLS_COMMANDS_PROGRESS_H

#include "tools/commands/Checkpoint.h"
#include "tools/commands/TerminalView.h"

#include <chrono>
#include <optional>
#include <string>

namespace tandem::commands {

class Progress {
public:
  /// `steps` are to be done; `interval` 0: a line for each twentieth of them,
  /// and none on a terminal. `view` draws instead, and is cleared here.
  Progress(int64_t steps, int64_t stepsPerEpoch, int64_t lastEpoch,
           int64_t batch, int64_t interval, TerminalView *view = nullptr);
  ~Progress() { clear(); }

  /// Reports a step; `position` is the one after it, `rate` the learning rate
  /// where a schedule makes it, `others` the seconds until now that were not
  /// those of steps.
  void step(const Position &position, double loss, std::optional<double> rate,
            double others);

  /// Removes the rewritten line, before something else is printed.
  void clear();

  /// Returns the seconds since the beginning.
  double seconds() const;

private:
  std::string text(const Position &position, double loss) const;

  using Clock = std::chrono::steady_clock;
  int64_t steps_, stepsPerEpoch_, lastEpoch_, batch_, interval_;
  TerminalView *view_; ///< shows steps instead; null: none
  bool terminal_, lines_, shown_ = false;
  Clock::time_point begin_, drawn_;
  int64_t done_ = 0, sinceLine_ = 0;
  double lossSinceLine_ = 0, others_ = 0;
  std::optional<double> rate_;
};

} // namespace tandem::commands

#endif
