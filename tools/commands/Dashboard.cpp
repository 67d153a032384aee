//===- Dashboard.cpp - a page that shows a training while it runs ---------===//
#include "tools/commands/Dashboard.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/DashboardServer.h"
#include "tools/commands/Log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <new>
#include <system_error>

using namespace tandem;
using namespace tandem::commands;

/// The port of an address, or -1.
static int portOf(std::string_view text) {
  for (std::string_view host : {"127.0.0.1:", "localhost:"})
    if (text.starts_with(host)) {
      text.remove_prefix(host.size());
      int port = -1;
      auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), port);
      bool isPort = error == std::errc() && end == text.data() + text.size() &&
                    port >= 0 && port <= 65535;
      return isPort ? port : -1;
    }
  return -1;
}

Status commands::checkDashboardAddress(std::string_view text) {
  if (portOf(text) >= 0)
    return Status::success();
  return Status::usage(
      "option '--dashboard' shows on this machine alone: expected "
      "127.0.0.1:PORT with a port from 0 to 65535, but got " +
      artifact::inQuotes(text));
}

Result<std::unique_ptr<Dashboard>> Dashboard::open(const std::string &address,
                                                   const std::string &title) {
  std::unique_ptr<Dashboard> made(new Dashboard);
  int port = address.empty() ? 0 : portOf(address);
  auto server = DashboardServer::listen(port, title);
  if (!server)
    return std::move(server).status().in("--dashboard");
  made->server_ = std::move(*server);
  made->url_ = made->server_->url();
  // Signals are the training's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  Status started;
  try {
    made->thread_ = std::thread([dashboard = made.get()] {
      try {
        dashboard->serve();
      } catch (const std::bad_alloc &) { // the training goes on without a page
      }
    });
  } catch (const std::system_error &error) {
    started = Status::failed(
        std::string("--dashboard: cannot start a thread: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started)
    return started;
  return made;
}

Dashboard::~Dashboard() {
  if (!thread_.joinable())
    return;
  end("it stopped before its end");
  stops_ = true;
  thread_.join();
}

void Dashboard::step(const Numbers &numbers) {
  uint64_t at = ring_->done.load(std::memory_order_relaxed);
  ring_->begun.store(at + 1, std::memory_order_relaxed);
  // Who reads one of these numbers sees that its place was begun.
  std::atomic_thread_fence(std::memory_order_release);
  for (size_t i = 0; i < Count; ++i)
    ring_->places[at % kRing][i].store(numbers[i], std::memory_order_relaxed);
  ring_->done.store(at + 1, std::memory_order_release);
}

void Dashboard::evaluation(
    int64_t step, const std::vector<std::pair<std::string, double>> &numbers) {
  std::string text = "{\"step\":" + std::to_string(step) + ",\"numbers\":{";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? "," : "") + jsonText(numbers[i].first) + ":" +
            jsonNumber(numbers[i].second);
  std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back(text + "}}");
}

/// Counts of whole octaves are enough to see: octave o > 0 is what is at least
/// 2^(o - 41) and less than twice that.
void Dashboard::histograms(int64_t step, const NamedHistograms &histograms) {
  std::string text = "{\"step\":" + std::to_string(step) + ",\"histograms\":{";
  for (size_t i = 0; i < std::min(histograms.size(), kMostShown); ++i) {
    const auto &[name, histogram] = histograms[i];
    std::map<int, int64_t> octaves;
    for (auto [number, count] : histogram.counts)
      octaves[number > 0 ? (number + 3) / 4 : -((3 - number) / 4)] += count;
    std::string counts;
    for (auto [octave, count] : octaves)
      counts += (counts.empty() ? "[" : ",[") + std::to_string(octave) + "," +
                std::to_string(count) + "]";
    auto count = double(histogram.count);
    double mean = histogram.sum / count;
    text += (i ? "," : "") + jsonText(name) + ":{\"octaves\":[" + counts +
            "],\"min\":" + jsonNumber(histogram.least) +
            ",\"max\":" + jsonNumber(histogram.most) +
            ",\"mean\":" + jsonNumber(mean) + ",\"deviation\":" +
            jsonNumber(std::sqrt(
                std::max(0.0, histogram.squares / count - mean * mean))) +
            ",\"nonfinite\":" + std::to_string(histogram.nonFinite) + "}";
  }
  std::lock_guard<std::mutex> lock(mutex_);
  histogramEvents_.emplace_back(step, text + "}}");
}

void Dashboard::end(const std::string &how) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ended_.empty())
    ended_ = how;
}

namespace {
/// What there is to show of the steps: of more than kMost the means of as many
/// as are needed, so that a browser has the same to draw after a week.
class History {
public:
  static constexpr size_t kMost = 2000;

  /// Returns whether all points are others now.
  bool add(const Dashboard::Numbers &numbers) {
    for (size_t i = 0; i < sum_.size(); ++i)
      sum_[i] = isMean(i) ? sum_[i] + numbers[i] : numbers[i];
    if (++summed_ < stride_)
      return false;
    for (size_t i = 0; i < sum_.size(); ++i)
      if (isMean(i))
        sum_[i] /= double(stride_);
    points_.push_back(sum_);
    sum_ = {};
    summed_ = 0;
    if (points_.size() < kMost)
      return false;
    for (size_t i = 0; i + 1 < points_.size(); i += 2) {
      for (size_t n = 0; n < sum_.size(); ++n)
        points_[i / 2][n] = isMean(n) ? (points_[i][n] + points_[i + 1][n]) / 2
                                      : points_[i + 1][n];
    }
    points_.resize(kMost / 2);
    stride_ *= 2;
    return true;
  }
  size_t size() const { return points_.size(); }
  /// [[step, epoch, ...], ...] of those from `first` on.
  std::string json(size_t first) const {
    std::string text = "[";
    for (size_t i = first; i < points_.size(); ++i) {
      text += i > first ? ",[" : "[";
      for (size_t n = 0; n < points_[i].size(); ++n)
        text += (n ? "," : "") + jsonNumber(points_[i][n]);
      text += "]";
    }
    return text + "]";
  }

private:
  /// Else the last one counts.
  static bool isMean(size_t number) {
    return number == Dashboard::Loss || number == Dashboard::Samples;
  }

  std::vector<Dashboard::Numbers> points_;
  Dashboard::Numbers sum_ = {};
  int64_t stride_ = 1, summed_ = 0;
};
} // namespace

/// Bytes of evaluations that a browser gets that comes late, and of histograms.
static constexpr size_t kMostEvaluations = 256 << 10;
static constexpr size_t kMostHistograms = 384 << 10;

static std::string eventOf(const char *name, const std::string &data) {
  return std::string("event: ") + name + "\ndata: " + data + "\n\n";
}

namespace {
/// Events of histograms that a browser gets that comes late. Of too many those
/// go that are nearest to their neighbours, never the first and the last.
class Pictures {
public:
  void add(int64_t step, std::string event) {
    bytes_ += event.size();
    events_.emplace_back(step, std::move(event));
    while (bytes_ > kMostHistograms && events_.size() > 2) {
      auto gap = [&](size_t i) {
        return events_[i + 1].first - events_[i - 1].first;
      };
      size_t least = 1;
      for (size_t i = 2; i + 1 < events_.size(); ++i)
        least = gap(i) < gap(least) ? i : least;
      bytes_ -= events_[least].second.size();
      events_.erase(events_.begin() + ptrdiff_t(least));
    }
  }
  std::string text() const {
    std::string all;
    for (const auto &[step, event] : events_)
      all += event;
    return all;
  }

private:
  std::vector<std::pair<int64_t, std::string>> events_;
  size_t bytes_ = 0;
};
} // namespace

void Dashboard::serve() {
  History history;
  std::string evaluations; ///< all of them, as events
  Pictures pictures;
  uint64_t next = 0;
  bool isOver = false;
  server_->greeting = [&] {
    return eventOf("all", history.json(0)) + evaluations + pictures.text();
  };
  auto takeSteps = [&] {
    size_t known = history.size();
    bool areOthers = false;
    uint64_t done = ring_->done.load(std::memory_order_acquire);
    if (done - next > kRing)
      next = done - kRing; // these are overwritten
    for (; next < done; ++next) {
      Numbers numbers;
      for (size_t i = 0; i < Count; ++i)
        numbers[i] =
            ring_->places[next % kRing][i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      // The step that takes this place over may have begun.
      if (ring_->begun.load(std::memory_order_relaxed) <= next + kRing)
        areOthers |= history.add(numbers);
    }
    if (areOthers)
      server_->send(server_->greeting());
    else if (history.size() > known)
      server_->send(eventOf("steps", history.json(known)));
  };
  while (!isOver) {
    server_->poll(200);
    isOver = stops_;
    takeSteps();
    std::vector<std::string> events;
    std::vector<std::pair<int64_t, std::string>> histograms;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      events.swap(events_);
      histograms.swap(histogramEvents_);
    }
    for (const std::string &event : events) {
      evaluations += eventOf("evaluation", event);
      server_->send(eventOf("evaluation", event));
    }
    for (const auto &[step, event] : histograms) {
      pictures.add(step, eventOf("histograms", event));
      server_->send(eventOf("histograms", event));
    }
    if (evaluations.size() > kMostEvaluations) // the older half goes
      evaluations.erase(0, evaluations.find("event: ", evaluations.size() / 2));
  }
  server_->send(eventOf("end", jsonText(ended_)));
  for (int i = 0; i < 20 && server_->hasUnsent(); ++i)
    server_->poll(50);
}
