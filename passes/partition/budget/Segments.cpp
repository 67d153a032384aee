//===- Segments.cpp - checkpoints along the forward -----------------------===//
#include "passes/partition/budget/Segments.h"

#include <deque>

using namespace tandem::budget;

Segments::Segments(const Problem &problem)
    : problem(problem), crossing(problem.forwardOps + 1),
      again(problem.forwardOps + 1), lastRead(problem.values.size(), kNone) {
  for (unsigned op = 0; op < problem.forwardOps; ++op)
    for (unsigned operand : problem.ops[op].operands)
      lastRead[operand] = op;
  std::vector<bool> isRead(problem.values.size());
  for (unsigned op = problem.forwardOps; op < problem.ops.size(); ++op)
    for (unsigned operand : problem.ops[op].operands)
      isRead[operand] = true;
  for (unsigned op = 0; op < problem.forwardOps; ++op) {
    int64_t made = 0;
    for (unsigned result : problem.ops[op].results) {
      const Value &v = problem.values[result];
      if (v.isFree)
        continue;
      if (isRead[result])
        made += v.againBytes;
      if (lastRead[result] == kNone)
        continue;
      // It crosses the positions from behind its op to before its last reader.
      crossing[op + 1] += v.bytes;
      crossing[lastRead[result] + 1] -= v.bytes;
    }
    again[op + 1] = again[op] + made;
  }
  for (unsigned position = 1; position < crossing.size(); ++position)
    crossing[position] += crossing[position - 1];
}

Set Segments::checkpoints(int64_t limit) const {
  // The fewest bytes with a cut at each position, and the cut before it.
  std::vector<int64_t> fewest(crossing.size());
  std::vector<unsigned> before(crossing.size(), 0);
  std::deque<unsigned> window = {0};
  for (unsigned position = 1; position < crossing.size(); ++position) {
    // One op may make more than the limit.
    while (window.size() > 1 && again[position] - again[window.front()] > limit)
      window.pop_front();
    before[position] = window.front();
    fewest[position] = fewest[window.front()] + crossing[position];
    while (!window.empty() && fewest[window.back()] >= fewest[position])
      window.pop_back();
    window.push_back(position);
  }
  std::vector<unsigned> cuts;
  for (unsigned at = before.back(); at > 0; at = before[at])
    cuts.push_back(at);
  // What crosses: made before a cut, read behind it.
  Set saved(problem.values.size());
  std::vector<unsigned> next(problem.forwardOps + 1, kNone);
  for (unsigned cut : cuts)
    next[cut] = cut;
  for (unsigned position = problem.forwardOps; position-- > 0;)
    if (next[position] == kNone)
      next[position] = next[position + 1];
  for (unsigned op = 0; op < problem.forwardOps; ++op)
    for (unsigned result : problem.ops[op].results)
      if (!problem.values[result].isFree && lastRead[result] != kNone &&
          next[op + 1] != kNone && next[op + 1] <= lastRead[result])
        saved.set(result);
  return saved;
}
