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

/// The seconds of a call, over `calls` of them after one that warms up.
static double turn(const Contender &contender, int calls) {
  // Pools of other libraries spin for up to a millisecond after their last
  // call (Library.h).
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (!contender.sample) {
    contender.call();
    return secondsOf([&] {
             for (int i = 0; i < calls; ++i)
               contender.call();
           }) /
           calls;
  }
  contender.sample();
  double spent = 0;
  for (int i = 0; i < calls; ++i)
    spent += contender.sample();
  return spent / calls;
}

std::vector<Times> bench::measure(const std::vector<Contender> &contenders,
                                  const Effort &effort) {
  std::vector<int> calls;
  double round = 0; ///< seconds that it takes
  for (const Contender &contender : contenders) {
    double once = turn(contender, 1);
    calls.push_back(std::max(1, static_cast<int>(effort.turn / once)));
    round += once * (calls.back() + 1) + 2e-3;
  }
  double budget = effort.seconds * static_cast<double>(contenders.size());
  int rounds =
      std::clamp(static_cast<int>(budget / round), effort.least, effort.most);
  std::vector<Times> times(contenders.size());
  for (int r = 0; r < rounds; ++r)
    for (size_t c = 0; c < contenders.size(); ++c)
      times[c].push_back(turn(contenders[c], calls[c]));
  return times;
}

std::vector<Contender> bench::fastest(std::vector<Contender> contenders) {
  std::vector<Contender> chosen;
  for (auto group : {Contender::Library, Contender::OwnLayout}) {
    std::vector<std::pair<double, Contender *>> order;
    for (Contender &contender : contenders)
      if (contender.group == group)
        order.emplace_back(std::min(turn(contender, 1), turn(contender, 1)),
                           &contender);
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
