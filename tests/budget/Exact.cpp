//===- Exact.cpp - the best set of a small graph --------------------------===//
//
// Two bounds. Memory: at each op of the backward, what lives there whatever is
// decided of the rest. Time: the Lagrangian relaxation of these bounds, in
// which saving a byte at an op of the backward has a price; what remains is a
// smallest cut. The prices are found by subgradient steps at the root (M. Held,
// R. M. Karp, 1971) and kept.
//
//===----------------------------------------------------------------------===//
#include "tests/budget/Exact.h"

#include "passes/partition/budget/Cut.h"

#include <algorithm>

using namespace tandem::budget;

namespace {

class Search {
public:
  Search(const Problem &problem, int64_t budget, unsigned mostNodes);
  void offer(const Set &set);
  ExactResult run();

private:
  /// One more than the ops of the backward: place 0 is before the first.
  size_t places() const { return base.size(); }
  void findBase();
  void findPrices();
  /// A lower bound of the step's time given what is decided, with the prices.
  double bound(Set &cutSet);
  int64_t most() const;
  /// Where the backward first needs a value whose readers are decided.
  unsigned firstNeed(unsigned value) const;
  /// Adds `sign` times what a decided value takes.
  void account(unsigned value, Choice choice, int sign);
  void branch(unsigned next);
  bool isBetter(double seconds) const {
    return !result.best ||
           seconds < result.best->evaluation.seconds * (1 - 1e-9);
  }

  const Problem &problem;
  const int64_t budget;
  const unsigned mostNodes;
  Simulator simulator;
  double fixedSeconds = 0;
  /// What is live at each place whatever is decided, and of the decided values.
  std::vector<int64_t> base, live;
  std::vector<double> byteSeconds, byteSecondsUpTo; ///< and their running sum
  std::vector<Choice> choices;
  std::vector<bool> isOpen;
  llvm::SmallVector<unsigned> order; ///< values, the last first
  /// The ops of the forward that read a value, and before which op of the
  /// backward an op runs again, as decided so far.
  std::vector<llvm::SmallVector<unsigned, 4>> readers;
  std::vector<unsigned> when;
  ExactResult result;
};

} // namespace

Search::Search(const Problem &problem, int64_t budget, unsigned mostNodes)
    : problem(problem), budget(budget), mostNodes(mostNodes),
      simulator(problem), choices(problem.values.size(), Choice::Open),
      isOpen(problem.values.size()), readers(problem.values.size()),
      when(problem.forwardOps, kNone) {
  for (unsigned op = problem.forwardOps; op-- > 0;) {
    const Op &o = problem.ops[op];
    for (unsigned operand : o.operands)
      readers[operand].push_back(op);
    for (unsigned result : o.results)
      if (const Value &v = problem.values[result];
          !o.mayNotRepeat && !v.isFree && !v.mustSave) {
        order.push_back(result);
        isOpen[result] = true;
      }
  }
  for (unsigned op = 0; op < problem.ops.size(); ++op)
    if (!problem.isForward(op) || !problem.ops[op].isLazy)
      fixedSeconds += problem.ops[op].seconds;
  findBase();
  byteSeconds.assign(places(), 0);
  byteSecondsUpTo.assign(places(), 0);
}

/// What values of the backward take at its ops, and the least that values of
/// the forward take between the first op that reads them and the last.
void Search::findBase() {
  size_t backwardOps = problem.ops.size() - problem.forwardOps;
  base.assign(backwardOps + 1, problem.residentBytes);
  auto add = [&](size_t from, size_t to, int64_t bytes) {
    for (size_t place = from; place <= to && place < base.size(); ++place)
      base[place] += bytes;
  };
  for (unsigned value = 0; value < problem.values.size(); ++value) {
    const Value &v = problem.values[value];
    unsigned first = simulator.firstUse(value), last = simulator.lastUse(value);
    auto placeOf = [&](unsigned op) { return op - problem.forwardOps + 1; };
    if (v.isFree)
      continue;
    if (v.producer != kNone && !problem.isForward(v.producer)) {
      size_t made = placeOf(v.producer);
      size_t end = v.isKept        ? base.size()
                   : last == kNone ? made
                                   : placeOf(last);
      add(made, end, v.ownBytes);
      continue;
    }
    if (first == kNone)
      continue;
    if (isOpen[value])
      add(placeOf(first), placeOf(last), std::min(v.bytes, v.againBytes));
    else
      add(0, placeOf(last), v.bytes);
  }
  // An op may write where one of its operands was.
  for (unsigned op = problem.forwardOps; op < problem.ops.size(); ++op) {
    const Op &o = problem.ops[op];
    int64_t shared = 0;
    if (o.overwrites)
      for (unsigned result : o.results)
        shared = std::max(shared, problem.values[result].ownBytes);
    base[op - problem.forwardOps + 1] -= shared;
  }
  live = base;
}

unsigned Search::firstNeed(unsigned value) const {
  unsigned first = simulator.firstUse(value);
  for (unsigned op : readers[value])
    first = std::min(first, when[op]);
  return first;
}

void Search::account(unsigned value, Choice choice, int sign) {
  const Value &v = problem.values[value];
  size_t firstPlace = places(), lastPlace = 0;
  auto placeOf = [&](unsigned op) { return op - problem.forwardOps + 1; };
  unsigned firstDirect = simulator.firstUse(value);
  bool isDirect = firstDirect != kNone;
  if (isDirect) {
    firstPlace = placeOf(firstDirect);
    lastPlace = placeOf(simulator.lastUse(value));
  }
  size_t directFirst = firstPlace, directLast = lastPlace;
  // What runs again before an op has read it when the op runs.
  for (unsigned op : readers[value])
    if (when[op] != kNone) {
      firstPlace = std::min<size_t>(firstPlace, placeOf(when[op]));
      lastPlace = std::max<size_t>(lastPlace, placeOf(when[op]) - 1);
    }
  if (choice == Choice::Saved)
    firstPlace = 0;
  int64_t bytes = choice == Choice::Saved ? v.bytes : v.againBytes;
  for (size_t place = firstPlace; place <= lastPlace; ++place)
    live[place] += sign * bytes;
  if (isDirect)
    for (size_t place = directFirst; place <= directLast; ++place)
      live[place] -= sign * std::min(v.bytes, v.againBytes);
}

int64_t Search::most() const {
  return *std::max_element(live.begin(), live.end());
}

double Search::bound(Set &cutSet) {
  std::vector<double> prices(problem.values.size());
  for (unsigned value = 0; value < prices.size(); ++value) {
    const Value &v = problem.values[value];
    prices[value] = v.saveSeconds;
    if (!isOpen[value] || choices[value] != Choice::Open)
      continue;
    unsigned first = simulator.firstUse(value), last = simulator.lastUse(value);
    if (first == kNone) {
      prices[value] += v.bytes * byteSecondsUpTo[0];
      continue;
    }
    size_t begin = first - problem.forwardOps, end = last - problem.forwardOps;
    double before = byteSecondsUpTo[begin];
    double within = byteSecondsUpTo[end + 1] - before;
    prices[value] +=
        v.bytes * before + (v.bytes - std::min(v.bytes, v.againBytes)) * within;
  }
  Cut cut = cheapestCut(problem, prices, choices);
  double seconds = fixedSeconds + cut.cost;
  for (size_t place = 0; place < places(); ++place)
    seconds -= byteSeconds[place] * static_cast<double>(budget - live[place]);
  cutSet = std::move(cut.saved);
  return seconds;
}

void Search::offer(const Set &set) {
  Evaluation evaluation = simulator.run(set);
  if (evaluation.peak <= budget && isBetter(evaluation.seconds))
    result.best = Solution{simulator.saved(), evaluation};
}

/// Subgradient steps: a byte costs more where the relaxed solution has too
/// many.
void Search::findPrices() {
  double all = 0;
  for (const Op &op : problem.ops)
    all += op.seconds + op.againSeconds;
  double step = 0.2 * all / static_cast<double>(std::max<int64_t>(budget, 1));
  std::vector<double> bestPrices = byteSeconds;
  double best = -1;
  Set cutSet;
  for (unsigned round = 0; round < 60; ++round) {
    double value = bound(cutSet);
    offer(cutSet);
    if (value > best) {
      best = value;
      bestPrices = byteSeconds;
    } else if (round % 4 == 3) {
      step *= 0.7;
    }
    std::vector<double> excess(places());
    double norm = 0;
    for (size_t place = 0; place < places(); ++place) {
      double bytes = static_cast<double>(live[place] - budget);
      for (unsigned v : order) {
        if (!cutSet.test(v))
          continue;
        unsigned last = simulator.lastUse(v);
        size_t end = last == kNone ? 0 : last - problem.forwardOps + 1;
        size_t begin =
            last == kNone ? 1 : simulator.firstUse(v) - problem.forwardOps + 1;
        if (place > end)
          continue;
        bytes += problem.values[v].bytes;
        if (place >= begin)
          bytes -=
              std::min(problem.values[v].bytes, problem.values[v].againBytes);
      }
      excess[place] = bytes;
      if (bytes > 0 || byteSeconds[place] > 0)
        norm = std::max(norm, std::abs(bytes));
    }
    if (norm == 0)
      break;
    double sum = 0;
    for (size_t place = 0; place < places(); ++place) {
      byteSeconds[place] =
          std::max(0.0, byteSeconds[place] + step * excess[place] / norm);
      sum += byteSeconds[place];
      byteSecondsUpTo[place] = sum;
    }
  }
  byteSeconds = bestPrices;
  double sum = 0;
  for (size_t place = 0; place < places(); ++place)
    byteSecondsUpTo[place] = sum += byteSeconds[place];
}

void Search::branch(unsigned next) {
  if (++result.nodes > mostNodes) {
    result.isProven = false;
    return;
  }
  if (most() > budget)
    return;
  Set cutSet;
  if (!isBetter(bound(cutSet)))
    return;
  offer(cutSet);
  // The next value that something needs.
  while (next < order.size() && firstNeed(order[next]) == kNone)
    ++next;
  if (next == order.size()) {
    Set set(problem.values.size());
    for (unsigned value : order)
      if (choices[value] == Choice::Saved)
        set.set(value);
    return offer(set);
  }
  unsigned value = order[next], op = problem.values[value].producer;
  auto decide = [&](Choice choice) {
    unsigned before = when[op];
    choices[value] = choice;
    account(value, choice, 1);
    if (choice == Choice::Again)
      when[op] = std::min(when[op], firstNeed(value));
    branch(next + 1);
    when[op] = before;
    account(value, choice, -1);
    choices[value] = Choice::Open;
  };
  bool savedFirst = cutSet.test(value);
  if (savedFirst)
    decide(Choice::Saved);
  decide(Choice::Again);
  if (!savedFirst && !problem.values[value].mustRecompute)
    decide(Choice::Saved);
}

ExactResult Search::run() {
  findPrices();
  branch(0);
  return std::move(result);
}

ExactResult tandem::budget::solveExactly(const Problem &problem, int64_t budget,
                                         const Set *known, unsigned mostNodes) {
  Search search(problem, budget, mostNodes);
  if (known)
    search.offer(*known);
  return search.run();
}
