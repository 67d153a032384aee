//===- Engine.h - tasks of ranks, played through --------------------------===//
//
// A rank has tasks in the order in which its program starts them, each on one
// of its streams. A stream runs its tasks one after the other; a task also
// waits for tasks of its rank that it names, and one that several ranks do
// together starts when all of them have come to it. From this follow all times:
// there is nothing random, and the same tasks have the same times.
//
// Knows neither devices nor links: a task has its seconds.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_ENGINE_H
#define TANDEM_TOOLS_SIMULATE_ENGINE_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::simulate {

/// What a task's time is spent on.
enum class Spent : uint8_t {
  Arithmetic, ///< a kernel that computes longer than it moves bytes
  Memory,     ///< a kernel that moves bytes longer
  Launch,     ///< a kernel that is over sooner than the next one could start
  Exchange,   ///< among ranks
};

/// Returns "arithmetic", "memory", ...
std::string_view spelling(Spent spent);

/// The stream of the kernels, and the first one of those beside it.
inline constexpr int kComputeStream = 0, kFirstOtherStream = 1;

struct Task {
  std::string_view name; ///< outlives the task
  Spent spent = Spent::Arithmetic;
  bool isProduct = false; ///< a kernel of products
  int stream = kComputeStream;
  double seconds = 0;
  double bytes = 0; ///< that an exchange has of one rank
  /// Tasks of the rank that must have ended, by their numbers, all lower than
  /// the own.
  std::vector<int> after;
  /// What several ranks do together has one number on all of them; else -1.
  int64_t meeting = -1;
  /// What `play` finds out.
  double start = 0, end = 0;
};

/// The tasks of a rank in their order.
using RankTasks = std::vector<Task>;

/// Fills the starts and ends of all tasks, from time 0 on. Fails if ranks wait
/// for each other for ever, and names a task that waits.
Status play(std::vector<RankTasks> &ranks);

/// Where the time of a rank went; the parts add up to `step`.
struct RankTimes {
  double step = 0; ///< until the last task of all ranks has ended
  double arithmetic = 0, memory = 0, launches = 0;
  double exposed = 0;   ///< exchanges while no kernel runs
  double bubble = 0;    ///< neither kernels nor exchanges
  double exchanges = 0; ///< all, also beside kernels: no part of `step`
  double kernels() const { return arithmetic + memory + launches; }
};

/// Of tasks that were played; `step` is the end of all ranks' tasks.
RankTimes timesOf(const RankTasks &tasks, double step);

/// When the last task of all has ended.
double endOf(const std::vector<RankTasks> &ranks);

} // namespace tandem::simulate

#endif
