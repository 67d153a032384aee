//===- StepOrder.cpp - orders of steps that need little memory ------------===//
#include "passes/plan/StepOrder.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>
#include <queue>
#include <tuple>

using namespace tandem;
using llvm::ArrayRef;
using llvm::SmallVector;

/// The most steps that are looked at together.
static constexpr unsigned kLookAhead = 6;
/// Steps are looked at when no more than this many others are left that a step
/// waits for, or that have a value.
static constexpr unsigned kFew = 3;
/// The most rounds, each of which runs what it can early, then late.
static constexpr unsigned kRounds = 3;

namespace {

/// A run of a graph's steps, forwards or backwards in time: what is in memory
/// now. Backwards, a value is in memory from its last step to its first.
class Run {
public:
  Run(const StepGraph &graph, bool isReversed);

  bool isDone(unsigned step) const { return done[step]; }
  bool isReady(unsigned step) const { return waiting[step] == 0; }
  int64_t bytesNow() const { return now; }
  /// The bytes in memory while the step runs beyond those before it, and the
  /// bytes after it beyond those.
  int64_t needed(unsigned step) const;
  int64_t change(unsigned step) const;

  /// Runs a step, or undoes the last one. Calls `notice` for steps of which
  /// readiness or change may be others now.
  void run(unsigned step);
  template <typename Fn> void run(unsigned step, Fn notice) {
    run(step);
    for (unsigned next : following(step)) {
      if (waiting[next] == 0)
        notice(next);
      else if (waiting[next] <= kFew)
        for (unsigned other : preceding(next))
          if (!done[other])
            notice(other);
    }
    for (unsigned value : graph.steps[step].values) {
      bool isFirst = left[value] + 1 == graph.values[value].steps.size();
      if (left[value] > 0 && (left[value] <= kFew || (isReversed && isFirst)))
        for (unsigned other : graph.values[value].steps)
          if (!done[other])
            notice(other);
    }
  }
  void undo(unsigned step);

  const SmallVector<unsigned, 4> &following(unsigned step) const {
    return isReversed ? graph.steps[step].before : graph.steps[step].after;
  }
  const SmallVector<unsigned, 4> &preceding(unsigned step) const {
    return isReversed ? graph.steps[step].after : graph.steps[step].before;
  }

private:
  /// The value is not in memory before any step that has it runs.
  bool isOpened(unsigned value) const {
    return left[value] == graph.values[value].steps.size() &&
           !(graph.values[value].isGiven && !isReversed);
  }
  /// The value is not in memory after the last step that has it.
  bool isClosed(unsigned value) const {
    return left[value] == 1 && !(graph.values[value].isGiven && isReversed);
  }

  const StepGraph &graph;
  bool isReversed;
  std::vector<char> done;
  std::vector<unsigned> waiting; ///< steps that must run before this one
  std::vector<unsigned> left;    ///< steps of the value that have not run
  int64_t now = 0;
};

/// One pass over an order, which runs early what frees memory.
class Mover {
public:
  Mover(const StepGraph &graph, ArrayRef<unsigned> order, bool isReversed,
        int64_t limit)
      : state(graph, isReversed), order(order), rank(order.size()),
        limit(limit), classes(order.size(), None) {
    for (auto [position, step] : llvm::enumerate(order))
      rank[step] = position;
  }
  std::vector<unsigned> move();

private:
  void notice(unsigned step) {
    if (state.isDone(step) || !state.isReady(step))
      return;
    // What frees memory by itself goes before what does together with others.
    Class now = state.change(step) < 0 ? Freeing : Possible;
    if (now >= classes[step])
      return;
    classes[step] = now;
    candidates.push({now, rank[step], step});
  }
  void commit(unsigned step) {
    result.push_back(step);
    state.run(step, [&](unsigned other) { notice(other); });
  }
  void consider(unsigned step);

  Run state;
  ArrayRef<unsigned> order;
  std::vector<unsigned> rank; ///< of each step in the order
  int64_t limit;
  std::vector<unsigned> result;
  enum Class : char { Freeing, Possible, None };
  using Entry = std::tuple<Class, unsigned, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>>
      candidates; ///< by rank
  std::vector<Class> classes;
};

} // namespace

Run::Run(const StepGraph &graph, bool isReversed)
    : graph(graph), isReversed(isReversed), done(graph.steps.size(), false) {
  for (unsigned step = 0; step < graph.steps.size(); ++step)
    waiting.push_back(preceding(step).size());
  for (const StepGraph::Value &value : graph.values) {
    left.push_back(value.steps.size());
    if (value.isGiven && !isReversed)
      now += value.bytes;
  }
}

int64_t Run::needed(unsigned step) const {
  int64_t bytes = 0;
  for (unsigned value : graph.steps[step].values)
    if (isOpened(value))
      bytes += graph.values[value].bytes;
  if (isReversed)
    return bytes;
  SmallVector<unsigned, 4> reused;
  for (auto [made, read] : graph.steps[step].reuses)
    if (left[read] == 1 && !llvm::is_contained(reused, read) &&
        !llvm::is_contained(reused, made)) {
      bytes -= graph.values[made].bytes;
      reused.append({read, made});
    }
  return bytes;
}

int64_t Run::change(unsigned step) const {
  int64_t bytes = 0;
  for (unsigned value : graph.steps[step].values) {
    if (isOpened(value))
      bytes += graph.values[value].bytes;
    if (isClosed(value))
      bytes -= graph.values[value].bytes;
  }
  return bytes;
}

void Run::run(unsigned step) {
  now += change(step);
  done[step] = true;
  for (unsigned value : graph.steps[step].values)
    --left[value];
  for (unsigned next : following(step))
    --waiting[next];
}

void Run::undo(unsigned step) {
  for (unsigned next : following(step))
    ++waiting[next];
  for (unsigned value : graph.steps[step].values)
    ++left[value];
  done[step] = false;
  now -= change(step);
}

/// Runs the step, and steps that follow from it, if less memory is in use
/// afterwards and none of them needs more than the limit.
void Mover::consider(unsigned step) {
  int64_t before = state.bytesNow();
  SmallVector<unsigned, kLookAhead> tried;
  SmallVector<unsigned, 16> open = {step};
  bool isBetter = false;
  while (!open.empty() && tried.size() < kLookAhead && !isBetter) {
    auto best = llvm::min_element(open, [&](unsigned x, unsigned y) {
      return std::make_pair(state.change(x), rank[x]) <
             std::make_pair(state.change(y), rank[y]);
    });
    unsigned next = *best;
    if (state.bytesNow() + state.needed(next) > limit)
      break;
    open.erase(best);
    tried.push_back(next);
    state.run(next, [&](unsigned other) {
      if (!state.isDone(other) && state.isReady(other) &&
          !llvm::is_contained(open, other) && open.size() < 16)
        open.push_back(other);
    });
    isBetter = state.bytesNow() < before;
  }
  for (unsigned other : llvm::reverse(tried))
    state.undo(other);
  if (isBetter)
    for (unsigned other : tried)
      commit(other);
}

std::vector<unsigned> Mover::move() {
  for (unsigned step : order)
    if (state.isReady(step))
      notice(step);
  for (unsigned step : order) {
    while (!candidates.empty()) {
      auto [kind, position, candidate] = candidates.top();
      candidates.pop();
      if (kind != classes[candidate])
        continue;
      classes[candidate] = None;
      if (!state.isDone(candidate))
        consider(candidate);
    }
    if (!state.isDone(step))
      commit(step);
  }
  return std::move(result);
}

OrderCost tandem::costOf(const StepGraph &graph, ArrayRef<unsigned> order) {
  Run state(graph, /*isReversed=*/false);
  OrderCost cost = {state.bytesNow(), 0};
  for (unsigned step : order) {
    cost.first = std::max(cost.first, state.bytesNow() + state.needed(step));
    state.run(step);
    cost.second += state.bytesNow();
  }
  return cost;
}

std::vector<unsigned> tandem::orderForMemory(const StepGraph &graph) {
  std::vector<unsigned> best(graph.steps.size());
  std::iota(best.begin(), best.end(), 0);
  OrderCost least = costOf(graph, best);
  auto attempt = [&](const std::vector<unsigned> &from, bool isReversed) {
    std::vector<unsigned> order(from);
    if (isReversed)
      std::reverse(order.begin(), order.end());
    order = Mover(graph, order, isReversed, least.first).move();
    if (isReversed)
      std::reverse(order.begin(), order.end());
    OrderCost cost = costOf(graph, order);
    if (cost < least) {
      least = cost;
      best = order;
    }
    return order;
  };
  for (unsigned round = 0; round < kRounds; ++round) {
    OrderCost before = least;
    std::vector<unsigned> start = best;
    attempt(attempt(start, /*isReversed=*/false), /*isReversed=*/true);
    attempt(attempt(start, /*isReversed=*/true), /*isReversed=*/false);
    if (least == before)
      break;
  }
  return best;
}
