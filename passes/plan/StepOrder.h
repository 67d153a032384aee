//===- StepOrder.h - orders of steps that need little memory --------------===//
//
// A graph without MLIR: steps that must keep an order among each other, and
// values that are in memory from the first of their steps to the last.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_STEPORDER_H
#define TANDEM_PASSES_PLAN_STEPORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace tandem {

class StepGraph {
public:
  struct Value {
    int64_t bytes;
    /// Who makes or reads it, without repetition; who makes it comes first.
    llvm::SmallVector<unsigned, 4> steps;
    /// It is in memory before the first step.
    bool isGiven = false;
  };
  /// The result `made` may lie where `read` does, in the step that makes the
  /// one and is the last to read the other.
  struct Reuse {
    unsigned made, read;
  };
  struct Step {
    llvm::SmallVector<unsigned, 4> before; ///< which must run before it
    llvm::SmallVector<unsigned, 4> after;  ///< the reverse
    llvm::SmallVector<unsigned, 4> values;
    llvm::SmallVector<Reuse, 2> reuses;
  };
  /// In an order that keeps `before`.
  std::vector<Step> steps;
  std::vector<Value> values;

  /// Once for each pair.
  void addEdge(unsigned before, unsigned after) {
    if (!edges.insert({before, after}).second)
      return;
    steps[before].after.push_back(after);
    steps[after].before.push_back(before);
  }

private:
  llvm::DenseSet<std::pair<unsigned, unsigned>> edges;
};

/// What an order costs: the most bytes in memory at one step, then their sum
/// over all steps.
using OrderCost = std::pair<int64_t, int64_t>;
OrderCost costOf(const StepGraph &graph, llvm::ArrayRef<unsigned> order);

/// Returns an order that keeps `before` and costs no more than that of the
/// graph. A step, or a few that follow from each other, run early where more
/// memory is free after them, and late where less is; all others stay where
/// they are. Takes time near linear in the edges of the graph.
std::vector<unsigned> orderForMemory(const StepGraph &graph);

} // namespace tandem

#endif
