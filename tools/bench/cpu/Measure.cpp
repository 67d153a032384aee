//===- Measure.cpp - contenders by turns ----------------------------------===//
#include "tools/bench/cpu/Measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

using namespace tandem;
using namespace tandem::bench;

double bench::secondsOf(const std::function<void()> &call) {
  auto begin = std::chrono::steady_clock::now();
  call();
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  return spent.count();
}

/// Calls that take longer need no other to warm up.
static constexpr double kLong = 0.02;
/// Tensors of some MiB that other contenders have driven out of the caches are
/// all there again after so many calls, or so many seconds of calls.
static constexpr int kWarmCalls = 4;
static constexpr double kWarmSeconds = 0.01;

static int callsToWarm(double seconds) {
  if (seconds >= kLong)
    return 0;
  return std::clamp(static_cast<int>(kWarmSeconds / seconds), 1, kWarmCalls);
}

/// The seconds of a call, over `calls` of them after `warming` that warm up.
static double turn(const Contender &contender, int warming, int calls) {
  // Pools of other libraries spin for up to a millisecond after their last
  // call (Library.h).
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  auto once = [&] {
    return contender.sample ? contender.sample() : secondsOf(contender.call);
  };
  for (int i = 0; i < warming; ++i)
    once();
  double spent = 0;
  for (int i = 0; i < calls; ++i)
    spent += once();
  return spent / calls;
}

std::vector<Times> bench::measure(const std::vector<Contender> &contenders,
                                  const Effort &effort) {
  std::vector<int> calls, warming;
  double round = 0; ///< seconds that it takes
  for (const Contender &contender : contenders) {
    double once = turn(contender, 0, 1);
    if (once < kLong)
      once = turn(contender, 1, 1);
    warming.push_back(callsToWarm(once));
    calls.push_back(std::max(1, static_cast<int>(effort.turn / once)));
    round += once * (calls.back() + warming.back()) + 2e-3;
  }
  double budget = effort.seconds * static_cast<double>(contenders.size());
  int rounds =
      std::clamp(static_cast<int>(budget / round), effort.least, effort.most);
  std::vector<Times> times(contenders.size());
  for (int r = 0; r < rounds; ++r)
    for (size_t c = 0; c < contenders.size(); ++c)
      times[c].push_back(turn(contenders[c], warming[c], calls[c]));
  return times;
}

std::vector<Contender> bench::fastest(std::vector<Contender> contenders) {
  std::vector<Contender> chosen;
  for (auto group : {Contender::Library, Contender::OwnLayout}) {
    std::vector<std::pair<double, Contender *>> order;
    for (Contender &contender : contenders)
      if (contender.group == group) {
        double time = turn(contender, 0, 1);
        if (time < kLong)
          time = turn(contender, kWarmCalls, 3);
        order.emplace_back(time, &contender);
      }
    std::sort(order.begin(), order.end());
    size_t wanted = group == Contender::Library ? 2 : 1;
    for (size_t i = 0; i < order.size() && i < wanted; ++i)
      chosen.push_back(std::move(*order[i].second));
  }
  return chosen;
}

double bench::quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  double place = part * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(place);
  double next = values[std::min(below + 1, values.size() - 1)];
  return values[below] +
         (place - static_cast<double>(below)) * (next - values[below]);
}

double bench::ratio(const Times &of, const Times &to) {
  std::vector<double> quotients;
  for (size_t r = 0; r < of.size(); ++r)
    quotients.push_back(of[r] / to[r]);
  return quantile(std::move(quotients), 0.5);
}
