//===- Fast.cpp - good sets for graphs of any size ------------------------===//
#include "passes/partition/budget/Fast.h"

#include "passes/partition/budget/Cut.h"
#include "passes/partition/budget/Segments.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <cmath>

using namespace tandem::budget;

namespace {

/// Graphs with at most this many choices are searched value by value.
constexpr unsigned kFewChoices = 64;
/// How many ops all evaluations of a search may visit together: about a second.
constexpr int64_t kMostVisits = 15'000'000;
/// How many rounds of cuts a search may make; each takes longer than an
/// evaluation.
constexpr unsigned kFewRounds = 8, kManyRounds = 30;

class Finder {
public:
  explicit Finder(const Problem &problem);

  void offer(const Set &set);
  void seed();
  /// The best found for a budget, after a search for better ones. `share` is
  /// the part of all visits that it may make.
  Solution improve(int64_t budget, double share);
  const std::vector<Solution> &found() const { return pool; }

private:
  bool isSmall() const { return simulator.choices().size() <= kFewChoices; }
  Set cutAt(llvm::ArrayRef<double> prices) const {
    return cheapestCut(problem, prices).saved;
  }
  std::vector<double> plainPrices(double byteSeconds) const;
  Solution evaluate(const Set &set);
  bool maySearch() const { return visits < mostVisits; }
  /// True if `x` is better for the budget than `y`: within it if `y` is not,
  /// else by time, or by peak where both are above it.
  bool isBetter(const Solution &x, const Solution &y) const;
  void priceTheExcess();
  Solution climb(Solution from);
  bool release(Solution &at);
  bool fill(Solution &at);
  bool swap(Solution &at);

  const Problem &problem;
  Simulator simulator;
  double allSeconds = 0;
  int64_t allBytes = 1;
  /// The values that are decided together, each group in the forward's order.
  std::vector<llvm::SmallVector<unsigned>> groups;
  std::vector<Solution> pool;
  int64_t budget = 0, visits = 0, mostVisits = kMostVisits;
};

} // namespace

Finder::Finder(const Problem &problem) : problem(problem), simulator(problem) {
  for (const Op &op : problem.ops)
    allSeconds += op.againSeconds + op.seconds;
  llvm::MapVector<uint64_t, llvm::SmallVector<unsigned>> kinds;
  for (unsigned value : simulator.choices()) {
    allBytes += problem.values[value].bytes;
    uint64_t kind = problem.values[value].kind;
    if (isSmall() || kind == 0)
      groups.push_back({value});
    else
      kinds[kind].push_back(value);
  }
  for (auto &[kind, values] : kinds)
    groups.push_back(std::move(values));
}

Solution Finder::evaluate(const Set &set) {
  visits += problem.ops.size();
  Evaluation evaluation = simulator.run(set);
  return {simulator.saved(), evaluation};
}

void Finder::offer(const Set &set) {
  Solution solution = evaluate(set);
  for (const Solution &other : pool)
    if (other.saved == solution.saved)
      return;
  pool.push_back(std::move(solution));
}

std::vector<double> Finder::plainPrices(double byteSeconds) const {
  std::vector<double> prices(problem.values.size());
  for (unsigned value = 0; value < prices.size(); ++value)
    prices[value] =
        problem.values[value].saveSeconds +
        static_cast<double>(problem.values[value].bytes) * byteSeconds;
  return prices;
}

/// Sets that know no budget.
void Finder::seed() {
  offer(cutAt(plainPrices(0)));
  double unit = allSeconds / static_cast<double>(allBytes);
  int step = isSmall() ? 1 : 2;
  for (int power = -8; power <= 6; power += step)
    offer(cutAt(plainPrices(std::ldexp(unit, power))));
  Set everything(problem.values.size(), true);
  offer(everything);
  offer(Set(problem.values.size()));

  // Checkpoints: alone, and with what is worth keeping within the segments.
  Segments segments(problem);
  for (double part = 1.5; part < 2.0 * problem.forwardOps && part < 400;
       part *= isSmall() ? 1.3 : 1.5) {
    Set set = segments.checkpoints(
        static_cast<int64_t>(static_cast<double>(segments.total()) / part));
    offer(set);
    for (int power : {-3, 0, 3}) {
      if (!isSmall() && power != 0)
        continue;
      std::vector<double> prices = plainPrices(std::ldexp(unit, power));
      for (unsigned value : set.set_bits())
        prices[value] = 0;
      offer(cutAt(prices));
    }
  }
}

bool Finder::isBetter(const Solution &x, const Solution &y) const {
  bool xFits = x.evaluation.peak <= budget, yFits = y.evaluation.peak <= budget;
  if (xFits != yFits)
    return xFits;
  if (!xFits && x.evaluation.peak != y.evaluation.peak)
    return x.evaluation.peak < y.evaluation.peak;
  if (x.evaluation.seconds != y.evaluation.seconds)
    return x.evaluation.seconds < y.evaluation.seconds;
  return x.evaluation.peak < y.evaluation.peak;
}

//===----------------------------------------------------------------------===//
// Prices
//===----------------------------------------------------------------------===//

/// Cuts at prices that rise for what is there at the peak, round by round.
void Finder::priceTheExcess() {
  std::vector<double> dear(problem.values.size(), 0);
  double step = 0.5 * allSeconds / static_cast<double>(allBytes);
  unsigned rounds = isSmall() ? kManyRounds : kFewRounds;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<double> prices = plainPrices(0);
    for (unsigned value = 0; value < prices.size(); ++value)
      prices[value] +=
          static_cast<double>(problem.values[value].bytes) * dear[value];
    Solution solution = evaluate(cutAt(prices));
    bool fits = solution.evaluation.peak <= budget;
    unsigned at = simulator.peakAt();
    offer(solution.saved);
    for (unsigned value : simulator.choices()) {
      // Saved, it would be there at the peak.
      unsigned last = simulator.lastUse(value);
      if (at == kNone || last == kNone || last >= at)
        dear[value] = std::max(0.0, dear[value] + (fits ? -step : step));
    }
    if (fits)
      step *= 0.5;
  }
}

//===----------------------------------------------------------------------===//
// Local search
//===----------------------------------------------------------------------===//

/// Takes out of the set what lowers the peak for the least time, until the
/// budget is met; false if nothing lowers it.
bool Finder::release(Solution &at) {
  while (at.evaluation.peak > budget && maySearch()) {
    std::optional<Solution> best;
    double bestScore = 0;
    for (const auto &group : groups) {
      // All of a group, or its first members: those of later blocks are not in
      // memory for long.
      size_t savedHere = llvm::count_if(
          group, [&](unsigned value) { return at.saved.test(value); });
      for (size_t count = savedHere; count > 0 && maySearch();
           count = count == 1 ? 0 : count / 2) {
        Set set = at.saved;
        size_t left = count;
        for (unsigned value : group)
          if (left > 0 && set.test(value)) {
            set.reset(value);
            --left;
          }
        Solution next = evaluate(set);
        int64_t goal = std::max(next.evaluation.peak, budget);
        double bytes = static_cast<double>(at.evaluation.peak - goal) +
                       1e-3 * static_cast<double>(at.evaluation.savedBytes -
                                                  next.evaluation.savedBytes);
        if (bytes <= 0 || next.evaluation.peak > at.evaluation.peak)
          continue;
        double seconds =
            next.evaluation.seconds - at.evaluation.seconds + 1e-6 * allSeconds;
        double score = seconds <= 0 ? 1e30 * bytes : bytes / seconds;
        if (!best || score > bestScore) {
          best = std::move(next);
          bestScore = score;
        }
      }
    }
    if (!best)
      return false;
    at = std::move(*best);
  }
  return at.evaluation.peak <= budget;
}

/// Adds what shortens the step the most and still fits.
bool Finder::fill(Solution &at) {
  bool changed = false;
  for (bool again = true; again && maySearch();) {
    again = false;
    std::optional<Solution> best;
    for (const auto &group : groups) {
      size_t unsaved = llvm::count_if(
          group, [&](unsigned value) { return !at.saved.test(value); });
      for (size_t count = unsaved; count > 0 && maySearch();
           count = count == 1 ? 0 : count / 2) {
        Set set = at.saved;
        size_t left = count;
        for (unsigned value : llvm::reverse(group))
          if (left > 0 && !set.test(value)) {
            set.set(value);
            --left;
          }
        Solution next = evaluate(set);
        if (next.evaluation.peak > std::max(budget, at.evaluation.peak))
          continue;
        if (isBetter(next, best ? *best : at))
          best = std::move(next);
        break;
      }
    }
    if (best && isBetter(*best, at)) {
      at = std::move(*best);
      again = changed = true;
    }
  }
  return changed;
}

/// Takes one or two values out or in, and repairs what follows.
bool Finder::swap(Solution &at) {
  llvm::ArrayRef<unsigned> values = simulator.choices();
  auto flip = [&](unsigned x, unsigned y) {
    Set set = at.saved;
    set.flip(values[x]);
    if (x != y)
      set.flip(values[y]);
    Solution next = evaluate(set);
    if (next.saved == at.saved)
      return false;
    release(next);
    fill(next);
    if (!isBetter(next, at))
      return false;
    at = std::move(next);
    return true;
  };
  for (unsigned apart = 0; apart < values.size(); ++apart)
    for (unsigned x = 0; x + apart < values.size() && maySearch(); ++x)
      if (flip(x, x + apart))
        return true;
  return false;
}

Solution Finder::climb(Solution at) {
  release(at);
  fill(at);
  if (isSmall())
    while (maySearch() && swap(at))
      continue;
  return at;
}

Solution Finder::improve(int64_t wantedBudget, double share) {
  budget = wantedBudget;
  mostVisits = visits + static_cast<int64_t>(share * kMostVisits);
  priceTheExcess();
  // From the best that fit and from those just above the budget.
  std::vector<unsigned> starts(pool.size());
  for (unsigned i = 0; i < starts.size(); ++i)
    starts[i] = i;
  std::sort(starts.begin(), starts.end(), [&](unsigned x, unsigned y) {
    if (isBetter(pool[x], pool[y]))
      return true;
    return !isBetter(pool[y], pool[x]) && x < y;
  });
  size_t fitting = llvm::count_if(pool, [&](const Solution &solution) {
    return solution.evaluation.peak <= budget;
  });
  constexpr size_t kStarts = 3;
  std::vector<unsigned> chosen(
      starts.begin(), starts.begin() + std::min(kStarts, starts.size()));
  for (size_t i = std::max(fitting, chosen.size());
       i < starts.size() && i < fitting + kStarts; ++i)
    chosen.push_back(starts[i]);
  Solution best = pool[chosen.front()];
  int64_t end = mostVisits, each = (end - visits) / chosen.size();
  for (unsigned start : chosen) {
    mostVisits = std::min(end, visits + each);
    Solution next = climb(pool[start]);
    if (isBetter(next, best))
      best = next;
  }
  pool.push_back(best);
  return best;
}

Solution tandem::budget::solveFast(const Problem &problem, int64_t budget) {
  Finder finder(problem);
  finder.seed();
  return finder.improve(budget, 1);
}

std::vector<Solution> tandem::budget::findChain(const Problem &problem,
                                                unsigned points,
                                                const std::vector<Set> &seeds) {
  Finder finder(problem);
  for (const Set &set : seeds)
    finder.offer(set);
  finder.seed();
  auto peak = [](const Solution &s) { return s.evaluation.peak; };
  auto least = finder.improve(0, 0.2);
  int64_t most = peak(*std::max_element(
      finder.found().begin(), finder.found().begin() + seeds.size() + 1,
      [&](const Solution &x, const Solution &y) { return peak(x) < peak(y); }));
  for (unsigned i = 1; i + 1 < points; ++i)
    finder.improve(peak(least) + (most - peak(least)) / (points - 1) * i,
                   0.8 / points);
  return paretoChain(finder.found());
}

std::vector<Solution> tandem::budget::findCheckpoints(const Problem &problem,
                                                      unsigned most) {
  Segments segments(problem);
  Simulator simulator(problem);
  std::vector<Solution> all;
  for (double part = 1.5; part < 2.0 * problem.forwardOps && part < 400;
       part *= 1.3) {
    auto limit =
        static_cast<int64_t>(static_cast<double>(segments.total()) / part);
    Evaluation evaluation = simulator.run(segments.checkpoints(limit));
    if (llvm::none_of(all, [&](const Solution &other) {
          return other.saved == simulator.saved();
        }))
      all.push_back({simulator.saved(), evaluation});
  }
  llvm::sort(all, [](const Solution &x, const Solution &y) {
    return std::make_pair(x.evaluation.peak, x.evaluation.seconds) <
           std::make_pair(y.evaluation.peak, y.evaluation.seconds);
  });
  if (all.size() > most)
    all.resize(most);
  return all;
}

std::vector<Solution>
tandem::budget::paretoChain(std::vector<Solution> solutions) {
  // By rising time; what follows must have a lower peak.
  std::vector<unsigned> order(solutions.size());
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](unsigned x, unsigned y) {
    const Evaluation &a = solutions[x].evaluation, &b = solutions[y].evaluation;
    return std::make_tuple(a.seconds, a.peak, x) <
           std::make_tuple(b.seconds, b.peak, y);
  });
  std::vector<Solution> chain;
  for (unsigned i : order) {
    Solution &solution = solutions[i];
    if (!chain.empty() &&
        solution.evaluation.peak >= chain.back().evaluation.peak)
      continue;
    chain.push_back(std::move(solution));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}
