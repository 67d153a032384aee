//===- MaxFlow.h - a smallest cut of a network ----------------------------===//
#ifndef TANDEM_PASSES_PARTITION_MAXFLOW_H
#define TANDEM_PASSES_PARTITION_MAXFLOW_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>

namespace tandem {

/// A directed network with a source and a sink. Dinic's algorithm (E. A.
/// Dinic, 1970): shortest augmenting paths, level by level; no recursion, so a
/// path may be as long as the graph. The same network in the same order gives
/// the same cut.
class MaxFlow {
public:
  static constexpr unsigned kSource = 0, kSink = 1;
  /// The capacity of an edge that may not be cut.
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

  /// Returns a new node.
  unsigned addNode();
  void addEdge(unsigned from, unsigned to, int64_t capacity);

  /// Pushes as much as possible from the source to the sink and returns how
  /// much that is: the capacity of a smallest cut.
  int64_t run();

  /// After run(): the nodes on the sink's side of the smallest cut that lies
  /// nearest to the sink.
  llvm::BitVector sinkSide() const;

private:
  /// Edges stand in pairs: edge ^ 1 is the reverse, which gives back.
  struct Edge {
    unsigned to;
    int64_t left;
  };

  /// Numbers nodes by their distance from the source; true if that reaches the
  /// sink.
  bool findLevels();
  /// Pushes along one path of rising levels; 0 when there is none left.
  int64_t pushOnce();

  llvm::SmallVector<Edge> edges;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> out{2};
  llvm::SmallVector<int> level;
  /// The first edge of each node that may still lead on.
  llvm::SmallVector<unsigned> next;
};

} // namespace tandem

#endif
