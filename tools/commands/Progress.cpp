//===- Progress.cpp - how training goes, on stderr ------------------------===//
#include "tools/commands/Progress.h"

#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace tandem::commands {

Progress::Progress(int64_t steps, int64_t stepsPerEpoch, int64_t lastEpoch,
                   int64_t batch, int64_t interval, TerminalView *view)
    : steps_(steps), stepsPerEpoch_(stepsPerEpoch), lastEpoch_(lastEpoch),
      batch_(batch),
      interval_(interval ? interval : std::max<int64_t>(1, steps / 20)),
      view_(view),
      terminal_(!view && sayings() == stderr && ::isatty(STDERR_FILENO) == 1),
      lines_(!view && (!terminal_ || interval > 0)), begin_(Clock::now()) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

std::string Progress::text(const Position &position, double loss) const {
  std::string rate = rate_ ? "lr " + roundedText(*rate_) + "  " : "";
  double elapsed = seconds();
  double perStep = elapsed / double(done_);
  double stepping = elapsed - others_;
  // The step just done belongs to the pass before, if it was its last one.
  int64_t step = position.step ? position.step : stepsPerEpoch_;
  int64_t epoch = position.epoch + (position.step ? 1 : 0);
  char line[200];
  std::snprintf(
      line, sizeof line,
      "epoch %lld/%lld  step %lld/%lld  loss %s  %s%s samples/s  "
      "%s left",
      static_cast<long long>(epoch), static_cast<long long>(lastEpoch_),
      static_cast<long long>(step), static_cast<long long>(stepsPerEpoch_),
      roundedText(loss).c_str(), rate.c_str(),
      rateText(stepping > 0 ? double(done_ * batch_) / stepping : 0.0).c_str(),
      timeText(perStep * double(steps_ - done_)).c_str());
  return line;
}

void Progress::step(const Position &position, double loss,
                    std::optional<double> rate, double others) {
  rate_ = rate;
  others_ = others;
  ++done_;
  ++sinceLine_;
  lossSinceLine_ += loss;
  bool due = sinceLine_ == interval_ || done_ == steps_;
  if (lines_ && due) {
    clear();
    if (std::FILE *to = sayings())
      std::fprintf(to, "%s\n",
                   text(position, lossSinceLine_ / double(sinceLine_)).c_str());
  }
  if (due) {
    sinceLine_ = 0;
    lossSinceLine_ = 0;
  }
  auto now = Clock::now();
  if (terminal_ &&
      (!shown_ || now - drawn_ >= std::chrono::milliseconds(100))) {
    std::fprintf(stderr, "\r\x1b[K%s", text(position, loss).c_str());
    std::fflush(stderr);
    drawn_ = now;
    shown_ = true;
  }
}

void Progress::clear() {
  if (view_)
    view_->clear();
  if (shown_)
    std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

} // namespace tandem::commands
