//===- Dashboard.h - a page that shows a training while it runs -----------===//
//
// A thread of its own serves one page on the loopback interface, and sends what
// happens to whoever looks at it (server-sent events). The training never waits
// for it: a step writes numbers into a ring, without a lock and without memory,
// and what the thread could not read in time is not shown.
//
// Who does not know the token in the address gets nothing: other users of the
// machine, and pages of other sites in the same browser. Names of hosts other
// than the loopback's are refused (DNS rebinding).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_DASHBOARD_H
#define TANDEM_TOOLS_COMMANDS_DASHBOARD_H

#include "runtime/artifact/Status.h"
#include "tools/commands/Histogram.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::commands {

/// Fails with Usage unless `text` is PORT of the loopback, "127.0.0.1:8080" or
/// "localhost:8080"; port 0 is one that is free.
Status checkDashboardAddress(std::string_view text);

class DashboardServer;

class Dashboard {
public:
  /// Numbers of a step: what is not known is NaN.
  enum Number { Step, Epoch, Loss, Rate, Samples, Memory, Seconds, Count };
  using Numbers = std::array<double, Count>;

  /// Begins to serve; `address` as above, or empty. `title` and `loss` are
  /// shown. Fails with the address where that is taken.
  static Result<std::unique_ptr<Dashboard>> open(const std::string &address,
                                                 const std::string &title);
  /// Says that the training has ended, if nobody said so, and waits for
  /// browsers for a second at most.
  ~Dashboard();

  /// Where it is.
  const std::string &url() const { return url_; }

  /// Neither waits nor allocates.
  void step(const Numbers &numbers);
  /// Numbers of an evaluation after `step`.
  void evaluation(int64_t step,
                  const std::vector<std::pair<std::string, double>> &numbers);
  /// Histograms of a step; of more than kMostShown the first ones.
  void histograms(int64_t step, const NamedHistograms &histograms);
  static constexpr size_t kMostShown = 200;
  /// How it ended, for people; the first call counts.
  void end(const std::string &how);

private:
  friend class DashboardServer;
  Dashboard() = default;
  void serve();

  /// The last steps; the place of step i is i % kRing.
  static constexpr uint64_t kRing = 4096;
  struct Ring {
    std::array<std::array<std::atomic<double>, Count>, kRing> places;
    std::atomic<uint64_t> begun{0}, done{0}; ///< of those that are written
  };
  std::unique_ptr<Ring> ring_ = std::make_unique<Ring>();
  std::mutex mutex_;                ///< of what follows
  std::vector<std::string> events_; ///< that were not sent
  std::vector<std::pair<int64_t, std::string>> histogramEvents_; ///< by steps
  std::string ended_;

  std::atomic<bool> stops_{false};
  std::string url_;
  std::unique_ptr<DashboardServer> server_;
  std::thread thread_;
};

} // namespace tandem::commands

#endif
