//===- RoundTrip.cpp - how far two processors are from each other ---------===//
#include "tools/commands/RoundTrip.h"

#include "runtime/device/Processors.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

using namespace tandem;
using Clock = std::chrono::steady_clock;

namespace {

/// Short, so that both threads are there for all of it on a busy machine, too.
constexpr int kTries = 15, kEnough = 5, kTripsOfTry = 200;
/// For a try: two threads that share a processor answer once in a while.
constexpr auto kPatience = std::chrono::milliseconds(20);

/// Whose turn it is: what one thread writes the other one waits for.
class Ball {
public:
  /// Whether `turn` came before the time was over.
  bool await(int turn, Clock::time_point end) const {
    for (int looked = 1; at.load(std::memory_order_acquire) != turn; ++looked)
      if (looked % 1024 == 0 && Clock::now() > end)
        return false;
    return true;
  }
  void give(int turn) { at.store(turn, std::memory_order_release); }

private:
  alignas(128) std::atomic<int> at{0};
};

std::optional<double> tryOnce() {
  Ball ball;
  auto end = Clock::now() + kPatience;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (int at = runtime::currentProcessor(); at >= 0 && at < CPU_SETSIZE)
    CPU_SET(at, &mine);
  std::thread other;
  try {
    other = std::thread([&] {
      runtime::leaveProcessors(mine); // where a system leaves both for a while
      for (int trip = 0; trip <= kTripsOfTry; ++trip) {
        if (!ball.await(2 * trip + 1, end))
          return;
        ball.give(2 * trip + 2);
      }
    });
  } catch (const std::system_error &) {
    return std::nullopt;
  }
  // The first trip is over once the other thread runs.
  ball.give(1);
  bool isDone = ball.await(2, end);
  auto begin = Clock::now();
  for (int trip = 1; isDone && trip <= kTripsOfTry; ++trip) {
    ball.give(2 * trip + 1);
    isDone = ball.await(2 * trip + 2, end);
  }
  std::chrono::duration<double> taken = Clock::now() - begin;
  other.join();
  if (!isDone)
    return std::nullopt;
  return taken.count() / kTripsOfTry;
}

} // namespace

std::optional<double> tandem::commands::roundTrip() {
  std::vector<double> seen;
  for (int i = 0; i < kTries && seen.size() < kEnough; ++i)
    if (auto one = tryOnce())
      seen.push_back(*one);
  if (seen.empty())
    return std::nullopt;
  auto middle = seen.begin() + seen.size() / 2;
  std::nth_element(seen.begin(), middle, seen.end());
  return *middle;
}
