//===- Measure.h - contenders by turns ------------------------------------===//
//
// In each round every contender has its turn: some calls that warm up, then as
// many as fill a few milliseconds. What is compared is compared within a round,
// so that a machine that slows down slows all of them. Between turns the
// threads of the one before get the time to fall asleep. A turn measures calls
// with the same tensors, which are in the caches as far as these have room: one
// call is not enough to bring them there, and who comes after a contender with
// the same inputs would be ahead.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_MEASURE_H
#define TANDEM_TOOLS_BENCH_CPU_MEASURE_H

#include "tools/bench/cpu/Case.h"

namespace tandem::bench {

struct Effort {
  double seconds = 0.2;     ///< for a contender, in all rounds
  double turn = 4e-3;       ///< seconds of calls in a turn
  int least = 5, most = 31; ///< rounds
};

/// Seconds of a call, by round.
using Times = std::vector<double>;

/// Returns the times of each contender.
std::vector<Times> measure(const std::vector<Contender> &contenders,
                           const Effort &effort);

/// The fastest of the libraries' contenders in a few calls: of those that do
/// what Tandem does, and of those with layouts of their own, up to two.
std::vector<Contender> fastest(std::vector<Contender> contenders);

/// Returns the value below which `part` of `values` are, 0.5 for the median.
double quantile(std::vector<double> values, double part);

/// Returns the median of the quotients, round by round.
double ratio(const Times &of, const Times &to);

/// Returns the seconds that a call takes.
double secondsOf(const std::function<void()> &call);

} // namespace tandem::bench

#endif
