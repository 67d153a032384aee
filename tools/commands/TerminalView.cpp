//===- TerminalView.cpp - a training on a terminal ------------------------===//
#include "tools/commands/TerminalView.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tandem::commands {
namespace {

constexpr size_t kMost = 1024, kName = 16, kNumber = 14;

struct Size {
  size_t columns = 80, rows = 24;
};

Size sizeOfTerminal() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
    return {};
  return {size.ws_col, size.ws_row};
}

bool isUtf8() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char *value = std::getenv(name); value && *value) {
      std::string_view text(value);
      return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
    }
  return false;
}

/// The means of `values` over as many parts as there are columns, or fewer.
std::string sparkline(const std::vector<double> &values, size_t columns) {
  static constexpr const char *blocks[] = {"▁", "▂", "▃", "▄",
                                           "▅", "▆", "▇", "█"};
  static constexpr const char *letters[] = {"_", ".", ":", "-",
                                            "=", "+", "*", "#"};
  auto signs = isUtf8() ? blocks : letters;
  size_t each = columns ? (values.size() + columns - 1) / columns : 0;
  std::vector<double> means;
  for (size_t i = 0; each && i < values.size(); i += each) {
    double sum = 0, count = 0;
    for (size_t j = i; j < std::min(i + each, values.size()); ++j)
      if (std::isfinite(values[j])) {
        sum += values[j];
        ++count;
      }
    means.push_back(sum / count);
  }
  double least = INFINITY, most = -INFINITY;
  for (double mean : means)
    if (std::isfinite(mean)) {
      least = std::min(least, mean);
      most = std::max(most, mean);
    }
  std::string text;
  for (double mean : means)
    text += !std::isfinite(mean) ? " "
            : most > least
                // Not a number, where a difference is infinite, is 7, too.
                ? signs[int(std::fmin(7, 8 * (mean - least) / (most - least)))]
                : signs[3];
  return text;
}

std::string padded(std::string text, size_t columns) {
  text.resize(columns, ' ');
  return text;
}

} // namespace

Status TerminalView::check() {
  const char *kind = std::getenv("TERM");
  if (sayings() != stderr || ::isatty(STDERR_FILENO) != 1)
    return Status::usage("--tui draws on a terminal, but stderr is none; "
                         "--dashboard and --log work everywhere");
  if (!kind || std::string_view(kind) == "dumb")
    return Status::usage("--tui needs a terminal whose lines can be drawn "
                         "again, but TERM is " +
                         artifact::inQuotes(kind ? kind : ""));
  return Status::success();
}

void TerminalView::Course::add(double value) {
  last = value;
  sum += value;
  if (++summed < stride)
    return;
  values.push_back(sum / double(stride));
  sum = 0;
  summed = 0;
  if (values.size() < kMost)
    return;
  for (size_t i = 0; i + 1 < values.size(); i += 2)
    values[i / 2] = (values[i] + values[i + 1]) / 2;
  values.resize(kMost / 2);
  stride *= 2;
}

TerminalView::Course &TerminalView::course(const std::string &name) {
  auto found = std::ranges::find(courses_, name, &Course::name);
  if (found == courses_.end())
    found = courses_.insert(found, Course{name, {}});
  return *found;
}

void TerminalView::step(const Dashboard::Numbers &numbers) {
  numbers_ = numbers;
  ++done_;
  course("loss").add(numbers[Dashboard::Loss]);
  if (std::isfinite(numbers[Dashboard::Rate]))
    course("learning rate").add(numbers[Dashboard::Rate]);
  course("samples/s").add(numbers[Dashboard::Samples]);
  course("memory").add(numbers[Dashboard::Memory]);
  auto now = std::chrono::steady_clock::now();
  if (drawn_.empty() || now - drawnAt_ >= std::chrono::milliseconds(100))
    draw();
}

void TerminalView::evaluation(
    const std::vector<std::pair<std::string, double>> &numbers) {
  for (const auto &[name, number] : numbers)
    course("eval " + name).add(number);
}

std::string TerminalView::line(const Course &course, size_t columns) const {
  std::string number = course.name == "memory" ? bytesText(int64_t(course.last))
                                               : roundedText(course.last);
  std::string text = padded(artifact::printable(course.name), kName) + " " +
                     padded(number, kNumber);
  if (columns <= text.size() + 1)
    return text.substr(0, columns);
  return text + " " + sparkline(course.values, columns - text.size() - 1);
}

void TerminalView::clear() {
  if (drawn_.empty())
    return;
  // A terminal that was made narrower has broken lines into several.
  size_t columns = sizeOfTerminal().columns, rows = 0;
  for (size_t length : drawn_)
    rows += std::max<size_t>(1, (length + columns - 1) / columns);
  std::fprintf(stderr, "\x1b[%zuA\r\x1b[J", rows);
  std::fflush(stderr);
  drawn_.clear();
}

void TerminalView::draw() {
  Size size = sizeOfTerminal();
  size_t columns = size.columns - 1;
  double seconds = numbers_[Dashboard::Seconds];
  double left = seconds / double(done_) * double(steps_ - done_);
  std::string head =
      artifact::printable(title_) + "  epoch " +
      std::to_string(int64_t(numbers_[Dashboard::Epoch])) + "  step " +
      std::to_string(int64_t(numbers_[Dashboard::Step])) + "  " +
      std::to_string(done_) + "/" + std::to_string(steps_) + "  " +
      timeText(seconds) + " done  " + timeText(left) + " left";
  std::vector<std::string> lines = {head.substr(0, columns)};
  for (const Course &one : courses_)
    lines.push_back(line(one, columns));
  lines.resize(std::min(lines.size(), std::max<size_t>(2, size.rows) - 1));
  clear();
  std::string text;
  for (const std::string &one : lines) {
    text += one + "\n";
    drawn_.push_back(columns);
  }
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  drawnAt_ = std::chrono::steady_clock::now();
}

void TerminalView::end() {
  if (done_)
    draw();
  drawn_.clear();
}

} // namespace tandem::commands
