//===- Tape.h - reverse differentiation of single numbers -----------------===//
#ifndef TANDEM_TESTS_PROPERTY_TAPE_H
#define TANDEM_TESTS_PROPERTY_TAPE_H

#include <functional>
#include <vector>

namespace tandem::property {

/// A number, and the node that its derivative is followed through; -1: none.
struct Number {
  double value = 0;
  int node = -1;
};

class Tape {
public:
  /// A node without sources.
  int leaf() {
    nodes.push_back({});
    return static_cast<int>(nodes.size()) - 1;
  }
  /// `value` with the derivatives `da` and `db` with respect to `a` and `b`;
  /// without a node if neither has one.
  Number number(double value, Number a, double da, Number b = {},
                double db = 0) {
    if (a.node < 0 && b.node < 0)
      return {value, -1};
    nodes.push_back({a.node, b.node, da, db});
    return {value, static_cast<int>(nodes.size()) - 1};
  }

  /// Adds `cotangent` to a node.
  void add(int node, double cotangent) {
    if (node < 0)
      return;
    nodes[node].cotangent += cotangent;
    nodes[node].isReached = true;
  }
  double cotangent(int node) const { return nodes[node].cotangent; }
  bool isReached(int node) const { return nodes[node].isReached; }

  /// Carries cotangents from the last node to the first; calls `visit` with
  /// each node before its own are carried on.
  void walk(const std::function<void(int)> &visit) {
    for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
      visit(i);
      if (!nodes[i].isReached)
        continue;
      add(nodes[i].a, nodes[i].da * nodes[i].cotangent);
      add(nodes[i].b, nodes[i].db * nodes[i].cotangent);
    }
  }

private:
  struct Node {
    int a = -1, b = -1;
    double da = 0, db = 0;
    double cotangent = 0;
    bool isReached = false;
  };
  std::vector<Node> nodes;
};

} // namespace tandem::property

#endif
