//===- Problem.cpp - a step in thought ------------------------------------===//
#include "passes/partition/budget/Problem.h"

#include <algorithm>

using namespace tandem::budget;

unsigned Problem::addValue(const Value &value) {
  values.push_back(value);
  values.back().producer = kNone;
  return values.size() - 1;
}

unsigned Problem::addOp(const Op &op, bool isForward) {
  unsigned number = ops.size();
  ops.push_back(op);
  if (isForward)
    forwardOps = ops.size();
  for (unsigned result : op.results)
    values[result].producer = number;
  return number;
}

/// True if `value` is saved where the backward needs it, whoever wants it.
static bool mustBeSaved(const Problem &problem, unsigned value) {
  const Value &v = problem.values[value];
  return v.mustSave || v.producer == kNone ||
         problem.ops[v.producer].mayNotRepeat;
}

Simulator::Simulator(const Problem &problem)
    : problem(problem), firstDirect(problem.values.size(), kNone),
      lastDirect(problem.values.size(), kNone) {
  for (unsigned op = problem.forwardOps; op < problem.ops.size(); ++op)
    for (unsigned operand : problem.ops[op].operands) {
      if (firstDirect[operand] == kNone)
        firstDirect[operand] = op;
      lastDirect[operand] = op;
    }
  // What the backward could need: all that leads to what it reads.
  std::vector<bool> useful(problem.values.size());
  for (unsigned value = 0; value < useful.size(); ++value)
    useful[value] = firstDirect[value] != kNone;
  for (unsigned op = problem.forwardOps; op-- > 0;) {
    const Op &o = problem.ops[op];
    if (o.mayNotRepeat ||
        std::none_of(o.results.begin(), o.results.end(),
                     [&](unsigned result) { return useful[result]; }))
      continue;
    for (unsigned operand : o.operands)
      useful[operand] = true;
  }
  for (unsigned value = 0; value < useful.size(); ++value) {
    const Value &v = problem.values[value];
    if (useful[value] && !v.isFree && !v.mustRecompute && v.producer != kNone &&
        problem.isForward(v.producer) && !mustBeSaved(problem, value))
      choosable.push_back(value);
  }
}

/// Who is saved, who runs again, and what runs in the forward.
void Simulator::settle(const Set &wanted) {
  size_t values = problem.values.size();
  isSaved.clear();
  isSaved.resize(values);
  needed.clear();
  needed.resize(values);
  inForward.clear();
  inForward.resize(problem.forwardOps);
  again.clear();
  again.resize(problem.forwardOps);
  when.assign(problem.forwardOps, kNone);
  std::vector<unsigned> &first = bucket;
  first.assign(values, kNone);

  auto settleValue = [&](unsigned value) {
    const Value &v = problem.values[value];
    if (!needed.test(value) || v.isFree)
      return false;
    if (!mustBeSaved(problem, value) &&
        (v.mustRecompute || !wanted.test(value)))
      return true;
    isSaved.set(value);
    now.savedBytes += v.bytes;
    now.seconds += v.saveSeconds;
    return false;
  };
  for (size_t value = 0; value < values; ++value) {
    const Value &v = problem.values[value];
    if (firstDirect[value] == kNone ||
        (v.producer != kNone && !problem.isForward(v.producer)))
      continue;
    needed.set(value);
    first[value] = firstDirect[value];
  }
  for (unsigned op = problem.forwardOps; op-- > 0;) {
    const Op &o = problem.ops[op];
    for (unsigned result : o.results)
      if (settleValue(result)) {
        again.set(op);
        when[op] = std::min(when[op], first[result]);
      }
    if (!again.test(op))
      continue;
    for (unsigned operand : o.operands) {
      needed.set(operand);
      first[operand] = std::min(first[operand], when[op]);
    }
  }
  for (size_t value = 0; value < values; ++value)
    if (problem.values[value].producer == kNone)
      settleValue(value);

  // The forward runs what it is for, and what saved values come of.
  Set wantedHere = isSaved;
  for (unsigned op = problem.forwardOps; op-- > 0;) {
    const Op &o = problem.ops[op];
    if (o.isLazy &&
        std::none_of(o.results.begin(), o.results.end(),
                     [&](unsigned result) { return wantedHere.test(result); }))
      continue;
    inForward.set(op);
    for (unsigned operand : o.operands)
      wantedHere.set(operand);
  }
}

/// The ops in the order in which they run.
void Simulator::schedule() {
  sequence.clear();
  for (unsigned op : inForward.set_bits())
    sequence.push_back(op);
  forwardLength = sequence.size();
  // What runs again, by the op that it runs before.
  size_t backwardOps = problem.ops.size() - problem.forwardOps;
  start.assign(backwardOps + 1, 0);
  for (unsigned op : again.set_bits())
    ++start[when[op] - problem.forwardOps + 1];
  for (size_t i = 0; i < backwardOps; ++i)
    start[i + 1] += start[i];
  std::vector<unsigned> &sorted = bucket;
  sorted.resize(std::max<size_t>(start[backwardOps], 1));
  std::vector<unsigned> next(start.begin(), start.end());
  for (unsigned op : again.set_bits())
    sorted[next[when[op] - problem.forwardOps]++] = op;
  for (size_t i = 0; i < backwardOps; ++i) {
    for (unsigned k = start[i]; k < start[i + 1]; ++k)
      sequence.push_back(sorted[k]);
    sequence.push_back(problem.forwardOps + i);
  }
}

/// Memory from op to op.
void Simulator::sweep() {
  size_t values = problem.values.size();
  lastForward.assign(values, -1);
  lastBackward.assign(values, -1);
  for (size_t i = 0; i < sequence.size(); ++i) {
    std::vector<int64_t> &last = i < forwardLength ? lastForward : lastBackward;
    for (unsigned operand : problem.ops[sequence[i]].operands)
      last[operand] = i;
  }
  // What a value takes now; -1 where it is not there.
  place.assign(values, -1);
  int64_t bytes = problem.residentBytes;
  now.peak = bytes;
  peakOp = kNone;
  // Arguments that are saved are copied before anything runs.
  for (unsigned value : isSaved.set_bits())
    if (problem.values[value].producer == kNone) {
      place[value] = problem.values[value].bytes;
      bytes += place[value];
    }
  for (size_t i = 0; i < sequence.size(); ++i) {
    unsigned op = sequence[i];
    const Op &o = problem.ops[op];
    bool isForwardNow = i < forwardLength;
    for (unsigned result : o.results) {
      const Value &v = problem.values[result];
      if (place[result] >= 0)
        continue; // saved, and its op runs again for another result
      place[result] = isForwardNow && isSaved.test(result)     ? v.bytes
                      : !isForwardNow && problem.isForward(op) ? v.againBytes
                                                               : v.ownBytes;
      bytes += place[result];
    }
    int64_t shared = 0;
    auto dies = [&](unsigned value) {
      if (place[value] < 0 || problem.values[value].isKept)
        return false;
      if (isForwardNow && isSaved.test(value))
        return false;
      int64_t last = isForwardNow ? lastForward[value] : lastBackward[value];
      return last <= static_cast<int64_t>(i);
    };
    if (o.overwrites)
      for (unsigned operand : o.operands)
        for (unsigned result : o.results)
          if (place[operand] > 0 && place[operand] == place[result] &&
              dies(operand))
            shared = place[operand];
    if (bytes - shared > now.peak) {
      now.peak = bytes - shared;
      peakOp = isForwardNow ? kNone : problem.isForward(op) ? when[op] : op;
    }
    auto release = [&](unsigned value) {
      if (!dies(value))
        return;
      bytes -= place[value];
      place[value] = -1;
    };
    for (unsigned operand : o.operands)
      release(operand);
    for (unsigned result : o.results)
      release(result);
    // What the forward alone was to read, the backward makes again.
    now.seconds +=
        isForwardNow || !problem.isForward(op) ? o.seconds : o.againSeconds;
    if (!isForwardNow && problem.isForward(op) && inForward.test(op))
      now.recomputedFlops += o.flops;
  }
}

Evaluation Simulator::run(const Set &wanted) {
  now = Evaluation();
  settle(wanted);
  schedule();
  sweep();
  return now;
}
