//===- Task.h - one backward ----------------------------------------------===//
//
// Internal to the graph. A task finds the nodes that its roots reach, counts
// the edges that lead to each, and runs those that are ready. Tasks of one
// thread nest. What a task keeps stands in a TaskMemory, of which each thread
// has one for each depth.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_TASK_H
#define TANDEM_RUNTIME_GRAPH_TASK_H

#include "runtime/graph/Engine.h"
#include "runtime/graph/NodeMap.h"
#include "runtime/graph/Sum.h"

#include <deque>

namespace tandem::graph {

struct NodeHooks;

/// What is known of a node during one backward.
struct NodeState {
  std::shared_ptr<Node> node;
  size_t firstChild = 0; ///< in `children`, one for each edge
  size_t edges = 0;      ///< when the backward began
  int waitsFor = 0;      ///< edges from which gradients may still come
  int gradients = Sums::none;
  bool isWanted = true;    ///< it runs
  bool isCaptured = false; ///< its gradients are asked for
  bool isReached = false;  ///< a root, or a node that ran leads here
  bool isQueued = false;
};

/// A stream of a device.
struct DeviceStream {
  Device device;
  Stream stream;
  bool operator==(const DeviceStream &) const = default;
};

/// A node that is ready. Leaves are equal: of two, the first that got ready
/// runs first.
struct Ready {
  uint64_t number;
  int state;
  bool isLeaf;
  bool operator<(const Ready &other) const {
    if (isLeaf || other.isLeaf)
      return !isLeaf && other.isLeaf;
    return number < other.number;
  }
};

struct TaskMemory {
  NodeMap map; ///< from nodes to states
  std::vector<NodeState> states;
  std::vector<int> children; ///< states, or -1
  std::vector<int> work;
  std::vector<Ready> ready; ///< a heap
  Sums sums;
  Gradients inputs, outputs, seen;
  std::vector<DeviceStream> rests;
  std::vector<std::function<Status()>> callbacks;

  void clear();
};

class Task {
public:
  enum class Kind { Collect, CollectAt, Capture };

  Task(Kind kind, const BackwardOptions &options);
  ~Task();
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;

  /// `results` is null unless gradients are captured.
  Status run(std::span<const Root> roots, std::span<const Edge> inputs,
             Gradients *results);
  void queue(std::function<Status()> callback) {
    memory.callbacks.push_back(std::move(callback));
  }
  bool isWanted(const Node &node, size_t edge) const;
  bool isCapturing() const { return kind == Kind::Capture; }
  const Counts &counts() const { return counts_; }

private:
  bool isSelective() const { return kind != Kind::Collect; }
  int find(const std::shared_ptr<Node> &node);
  Status search(std::span<const Root> roots, std::span<const Edge> inputs);
  void choose(std::span<const Edge> inputs);
  Status addRoots(std::span<const Root> roots);
  Status give(const Edge &edge, int state, Value gradient, Stream producer);
  Status runReady();
  Status runArrivals();
  Status arrive(Arrival arrival);
  void count(int state);
  Status runNode(int index);
  Status callHooks(Node &node, NodeHooks *hooks);
  Status capture(Node &node);
  Status callNode(Node &node, NodeHooks *hooks);
  Status checkOutputs(Node &node);
  Status giveOutputs(int index);
  Status runCallbacks();
  Status checkAllRan() const;
  Status finish();
  void cameToRest(const Value &gradient, const Node &node);
  void makeReady(int state);

  Kind kind;
  RunMode mode;
  Arrivals *arrivals;
  TaskMemory &memory;
  std::span<const Edge> wanted;
  Gradients *results = nullptr;
  int current = -1;    ///< the state of the node that runs
  std::string changed; ///< an edge that changed during the backward
  Counts counts_;
};

/// Fits a gradient to what an input of a node takes: sums a shape that was
/// expanded, casts the type, moves a number to the device.
Status conform(const Node &node, int input, Value &gradient);

} // namespace tandem::graph

#endif
