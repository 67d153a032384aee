//===- Cut.cpp - the cheapest set at given prices -------------------------===//
#include "passes/partition/budget/Cut.h"

#include "passes/partition/MaxFlow.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::budget;

namespace {

/// A value is cut between `in` and `out` where it is saved. On the sink's side
/// are values that the backward has and ops that run in it.
class Network {
public:
  Network(const Problem &problem, llvm::ArrayRef<double> prices,
          llvm::ArrayRef<Choice> choices);
  Cut solve();

private:
  int64_t capacity(double seconds) const {
    double units = std::floor(std::max(seconds, 0.0) * scale);
    return static_cast<int64_t>(std::min(units, 0x1p56));
  }
  int64_t priceOf(unsigned value) const;

  const Problem &problem;
  llvm::ArrayRef<double> prices;
  llvm::ArrayRef<Choice> choices;
  double scale = 1;
  MaxFlow flow;
  std::vector<unsigned> in, out;
};

} // namespace

int64_t Network::priceOf(unsigned value) const {
  const Value &v = problem.values[value];
  if (v.producer == kNone || problem.ops[v.producer].mayNotRepeat || v.mustSave)
    return capacity(prices[value]);
  if (v.mustRecompute || (!choices.empty() && choices[value] == Choice::Again))
    return MaxFlow::kUnlimited;
  return capacity(prices[value]);
}

Network::Network(const Problem &problem, llvm::ArrayRef<double> prices,
                 llvm::ArrayRef<Choice> choices)
    : problem(problem), prices(prices), choices(choices),
      in(problem.values.size(), kNone), out(problem.values.size(), kNone) {
  double all = 0;
  for (const Op &op : problem.ops)
    all += op.seconds + op.againSeconds;
  scale = 0x1p40 / std::max(all, 1e-30);

  std::vector<bool> isRead(problem.values.size());
  for (unsigned op = problem.forwardOps; op < problem.ops.size(); ++op)
    for (unsigned operand : problem.ops[op].operands)
      isRead[operand] = true;
  auto addValue = [&](unsigned value) {
    if (problem.values[value].isFree)
      return;
    in[value] = flow.addNode();
    out[value] = flow.addNode();
    flow.addEdge(in[value], out[value], priceOf(value));
    if (isRead[value])
      flow.addEdge(out[value], MaxFlow::kSink, MaxFlow::kUnlimited);
  };
  for (unsigned value = 0; value < problem.values.size(); ++value)
    if (problem.values[value].producer == kNone) {
      addValue(value);
      if (in[value] != kNone)
        flow.addEdge(MaxFlow::kSource, in[value], MaxFlow::kUnlimited);
    }
  for (unsigned op = 0; op < problem.forwardOps; ++op) {
    const Op &o = problem.ops[op];
    unsigned node = flow.addNode();
    flow.addEdge(MaxFlow::kSource, node,
                 o.mayNotRepeat ? MaxFlow::kUnlimited
                                : capacity(o.againSeconds));
    for (unsigned operand : o.operands)
      if (out[operand] != kNone && !o.mayNotRepeat)
        flow.addEdge(out[operand], node, MaxFlow::kUnlimited);
    for (unsigned result : o.results) {
      addValue(result);
      if (in[result] == kNone)
        continue;
      flow.addEdge(node, in[result], MaxFlow::kUnlimited);
      const Value &v = problem.values[result];
      bool isSettled =
          v.mustSave || (!choices.empty() && choices[result] == Choice::Saved);
      if (isSettled)
        flow.addEdge(MaxFlow::kSource, in[result], MaxFlow::kUnlimited);
    }
  }
}

Cut Network::solve() {
  Cut cut;
  cut.cost = static_cast<double>(flow.run()) / scale;
  llvm::BitVector sink = flow.sinkSide();
  cut.saved.resize(problem.values.size());
  for (unsigned value = 0; value < in.size(); ++value)
    if (in[value] != kNone && !sink.test(in[value]) && sink.test(out[value]))
      cut.saved.set(value);
  return cut;
}

Cut tandem::budget::cheapestCut(const Problem &problem,
                                llvm::ArrayRef<double> prices,
                                llvm::ArrayRef<Choice> choices) {
  return Network(problem, prices, choices).solve();
}
