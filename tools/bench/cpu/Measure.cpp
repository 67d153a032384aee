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

/// The seconds of a call, over `calls` of them after one that warms up.
static double turn(const Contender &contender, int calls, bool isWarm) {
  // Pools of other libraries spin for up to a millisecond after their last
  // call (Library.h).
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  auto once = [&] {
    return contender.sample ? contender.sample() : secondsOf(contender.call);
  };
  if (!isWarm)
    once();
  double spent = 0;
  for (int i = 0; i < calls; ++i)
    spent += once();
  return spent / calls;
}

std::vector<Times> bench::measure(const std::vector<Contender> &contenders,
                                  const Effort &effort) {
  std::vector<int> calls;
  std::vector<bool> isLong;
  double round = 0; ///< seconds that it takes
  for (const Contender &contender : contenders) {
    double once = turn(contender, 1, true);
    if (once < kLong)
      once = turn(contender, 1, false);
    isLong.push_back(once >= kLong);
    calls.push_back(std::max(1, static_cast<int>(effort.turn / once)));
    round += once * (calls.back() + !isLong.back()) + 2e-3;
  }
  double budget = effort.seconds * static_cast<double>(contenders.size());
  int rounds =
      std::clamp(static_cast<int>(budget / round), effort.least, effort.most);
  std::vector<Times> times(contenders.size());
  for (int r = 0; r < rounds; ++r)
    for (size_t c = 0; c < contenders.size(); ++c)
      times[c].push_back(turn(contenders[c], calls[c], isLong[c]));
  return times;
}

std::vector<Contender> bench::fastest(std::vector<Contender> contenders) {
  std::vector<Contender> chosen;
  for (auto group : {Contender::Library, Contender::OwnLayout}) {
    std::vector<std::pair<double, Contender *>> order;
    for (Contender &contender : contenders)
      if (contender.group == group) {
        double time = turn(contender, 1, true);
        if (time < kLong)
          time = turn(contender, 3, true);
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
