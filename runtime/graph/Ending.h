//===- Ending.h - the end of nodes and of what they hold ------------------===//
//
// Internal to the graph. A node holds other nodes: by its edges, and by what
// its hooks, its functions and its saved values keep. What a node held ends one
// after the other, not in a recursion as deep as the chain is long: the first
// Ending of a thread ends what all those inside of it are given.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_ENDING_H
#define TANDEM_RUNTIME_GRAPH_ENDING_H

#include <memory>
#include <utility>
#include <vector>

namespace tandem::graph {

class Ending {
public:
  Ending() : isFirst(!current()) {
    if (isFirst)
      current() = this;
  }
  ~Ending() {
    if (!isFirst)
      return;
    while (!held.empty()) {
      std::shared_ptr<void> last = std::move(held.back());
      held.pop_back();
    }
    current() = nullptr;
  }
  Ending(const Ending &) = delete;
  Ending &operator=(const Ending &) = delete;

  void take(std::shared_ptr<void> one) {
    current()->held.push_back(std::move(one));
  }

private:
  /// No object: nodes may end after a thread's objects have.
  static Ending *&current() {
    static thread_local Ending *first = nullptr;
    return first;
  }

  bool isFirst;
  std::vector<std::shared_ptr<void>> held; ///< of the first
};

} // namespace tandem::graph

#endif
