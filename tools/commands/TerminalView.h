//===- TerminalView.h - a training on a terminal --------------------------===//
//
// `train --tui`: a few lines on stderr that are drawn again in their place, ten
// times a second at most: numbers, and beside each a sparkline of its course.
// No mode of the terminal is changed and the cursor stays below the lines, so
// that nothing has to be put back, however the training ends.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TERMINALVIEW_H
#define TANDEM_TOOLS_COMMANDS_TERMINALVIEW_H

#include "tools/commands/Dashboard.h"

#include <chrono>

namespace tandem::commands {

class TerminalView {
public:
  /// Fails with Usage unless stderr is a terminal that can be drawn on.
  static Status check();

  /// `steps` are to be done by this call.
  TerminalView(std::string title, int64_t steps)
      : title_(std::move(title)), steps_(steps) {}

  void step(const Dashboard::Numbers &numbers);
  void evaluation(const std::vector<std::pair<std::string, double>> &numbers);
  /// Removes the lines, before something else is printed.
  void clear();
  /// Leaves the last numbers on the screen.
  void end();

private:
  /// What a sparkline shows: of more than kMost values the means of two.
  struct Course {
    std::string name;
    std::vector<double> values;
    double last = 0, sum = 0;
    int64_t stride = 1, summed = 0;
    void add(double value);
  };
  Course &course(const std::string &name);
  std::string line(const Course &course, size_t columns) const;
  void draw();

  std::string title_;
  int64_t steps_, done_ = 0;
  Dashboard::Numbers numbers_ = {};
  std::vector<Course> courses_;
  std::vector<size_t> drawn_; ///< the columns of each line on the screen
  std::chrono::steady_clock::time_point drawnAt_;
};

} // namespace tandem::commands

#endif
