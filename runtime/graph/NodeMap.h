//===- NodeMap.h - numbers of nodes ---------------------------------------===//
//
// Internal to the graph. Maps addresses of nodes to numbers from 0. Keeps its
// memory when it is cleared.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_NODEMAP_H
#define TANDEM_RUNTIME_GRAPH_NODEMAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::graph {

class Node;

class NodeMap {
public:
  /// Returns the node's number, or -1.
  int find(const Node *node) const {
    if (slots.empty())
      return -1;
    const Slot &slot = slots[place(node)];
    return slot.node ? slot.number : -1;
  }

  /// Returns the node's number; if it has none, gives it `next` and sets
  /// `isNew`.
  int findOrAdd(const Node *node, int next, bool &isNew) {
    if (2 * (used.size() + 1) > slots.size())
      grow();
    size_t at = place(node);
    Slot &slot = slots[at];
    isNew = !slot.node;
    if (isNew) {
      slot = {node, next};
      used.push_back(at);
    }
    return slot.number;
  }

  /// Takes time for the nodes that are there, not for those that there were.
  void clear() {
    for (size_t at : used)
      slots[at] = Slot();
    used.clear();
  }

private:
  struct Slot {
    const Node *node = nullptr;
    int number = -1;
  };

  size_t place(const Node *node) const {
    auto bits = reinterpret_cast<uintptr_t>(node);
    size_t at = (uint64_t(bits) * 0x9E3779B97F4A7C15u) >> shift;
    while (slots[at].node && slots[at].node != node)
      at = (at + 1) & (slots.size() - 1);
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots.empty() ? 16 : 2 * slots.size());
    old.swap(slots);
    shift = 64;
    for (size_t size = slots.size(); size > 1; size /= 2)
      --shift;
    used.clear();
    for (const Slot &slot : old)
      if (slot.node) {
        used.push_back(place(slot.node));
        slots[used.back()] = slot;
      }
  }

  std::vector<Slot> slots;  ///< a power of two of them, half of them free
  std::vector<size_t> used; ///< slots
  unsigned shift = 64;
};

} // namespace tandem::graph

#endif
