//===- Task.h - one backward ----------------------------------------------===//
//
// Internal to the graph. A task finds the nodes that its roots reach, counts
// the edges that lead to each, and runs those that are ready. What a task keeps
// stands in a TaskMemory, of which each thread has one for each depth.
//
// A lane is what one thread runs of a task. Most tasks have one, the caller's.
// With nodes of several devices (Lanes.cpp) there is one more for each device
// beside the caller's, served by the device's thread (DeviceThreads.h): a
// node's state is its lane's alone, and lanes hand gradients to each other in
// slots, of which each edge has one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_TASK_H
#define TANDEM_RUNTIME_GRAPH_TASK_H

#include "runtime/graph/Engine.h"
#include "runtime/graph/Modes.h"
#include "runtime/graph/NodeMap.h"
#include "runtime/graph/Sum.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace tandem::graph {

class Mailbox;
class Task;
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

/// A gradient that a callback is given, as it was before.
struct Noted {
  std::shared_ptr<runtime::Storage> storage;
  uint64_t version;
};

/// What one thread runs of a task.
struct Lane {
  Task *task = nullptr;
  std::vector<Ready> ready; ///< a heap
  Sums sums;
  Gradients inputs, outputs, seen;
  std::vector<Noted> noted; ///< while a hook runs
  std::vector<DeviceStream> rests;
  int current = -1; ///< the state of the node that runs
  size_t ran = 0;
  std::string changed; ///< an edge that changed during the backward

  // Where a task has several lanes.
  Device device;              ///< whose thread serves it; the host: the caller
  Mailbox *mailbox = nullptr; ///< of that thread
  std::vector<int> taken;     ///< slots
  /// What a device's thread exchanges its own with while it serves the lane.
  Modes modes;
  runtime::CurrentStreams streams;
  // Guarded by the mailbox.
  std::vector<int> arrived; ///< slots that other lanes filled
  bool isActive = false;    ///< it is served, or waits for that
  Lane *next = nullptr;     ///< in the mailbox

  void clear();
};

/// The lane that runs on this thread, or null.
Lane *currentLane();
Lane *exchangeCurrentLane(Lane *lane);

/// A device of a task, and how many of its nodes are there.
struct TaskDevice {
  Device device;
  size_t nodes = 0;
};

/// What comes over one edge, on its way to another lane or before its turn.
struct Slot {
  Sums::Given given; ///< undefined: nothing comes
  int state = -1;    ///< to which it goes
  bool isFilled = false;
};

/// What comes to a state: in an order that does not depend on time.
struct Incoming {
  Lane *lane = nullptr; ///< that runs it
  int first = 0;        ///< slot
  int next = 0;         ///< how many slots had their turn
  int waitsFor = 0;     ///< as `NodeState::waitsFor`, while the order is found
  bool isQueued = false;
};

struct TaskMemory {
  NodeMap map; ///< from nodes to states
  std::vector<NodeState> states;
  std::vector<int> children; ///< states, or -1
  std::vector<int> work;
  std::vector<TaskDevice> devices;
  Lane own; ///< the caller's
  std::vector<std::function<Status()>> callbacks;

  // Where a task has several lanes.
  std::deque<Lane> others; ///< more than there are, perhaps
  size_t otherCount = 0;
  std::vector<Incoming> incoming; ///< for each state
  std::vector<Slot> slots;
  std::vector<int> slotOf; ///< for each of `children`
  Modes modes;             ///< the caller's

  void clear();
  void clearLanes();
};

/// The device that a node belongs to: that of its first input that is on one.
Device deviceOf(const Node &node);

class Task {
public:
  enum class Kind { Collect, CollectAt, Capture };

  /// `outer` is the lane whose node asks for the task, or null.
  Task(Kind kind, const BackwardOptions &options, const Lane *outer);
  ~Task();
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;

  /// `results` is null unless gradients are captured.
  Status run(std::span<const Root> roots, std::span<const Edge> inputs,
             Gradients *results);
  void queue(std::function<Status()> callback);
  bool isWanted(const Lane &lane, const Node &node, size_t edge) const;
  bool isCapturing() const { return kind == Kind::Capture; }
  Counts counts() const;
  Lane &own() { return memory.own; }

  // Of the threads that serve its lanes.
  /// Takes what came to a lane, and runs one node.
  void step(Lane &lane);
  /// A lane has become active, or has nothing left.
  void enter() { ++active; }
  void leave();

private:
  friend class Mailbox;

  bool isSelective() const { return kind != Kind::Collect; }
  int find(const std::shared_ptr<Node> &node);
  void countDevice(const Node &node);
  Status search(std::span<const Root> roots, std::span<const Edge> inputs);
  void choose(std::span<const Edge> inputs);
  Status addRoots(std::span<const Root> roots);
  Status give(const Edge &edge, int state, Value &&gradient, Stream producer);
  static Status note(const Edge &edge, Sums::Given &given, Stream producer);
  Status add(Lane &lane, int state, Sums::Given &&given);
  Status runReady();
  Status runArrivals();
  Status arrive(Arrival arrival);
  void count(int state);
  Status runNode(Lane &lane, int index);
  Status callHooks(Lane &lane, Node &node, NodeHooks *hooks);
  Status keepFromCallbacks(Gradients &gradients) const;
  Status capture(Lane &lane, Node &node);
  Status callNode(Lane &lane, Node &node, NodeHooks *hooks);
  Status checkOutputs(Lane &lane, Node &node);
  Status giveOutputs(Lane &lane, int index);
  Status runCallbacks();
  Status checkAllRan() const;
  Status finish();
  static Status joinStreams(const Lane &lane);
  static void cameToRest(Lane &lane, const Value &gradient, const Node &node);
  void makeReady(Lane &lane, int state);

  // Where a task has several lanes (Lanes.cpp).
  void spread(std::span<const Root> roots);
  bool isWorthLanes() const;
  void placeStates();
  void orderSlots(std::span<const Root> roots);
  Lane &laneOf(int state) {
    return hasLanes ? *memory.incoming[size_t(state)].lane : memory.own;
  }
  Status deliver(Lane &lane, const Edge &edge, int child, int slot,
                 Value &&gradient, Stream producer);
  Status takeSlot(Lane &lane, int slot);
  Status runLanes();
  void fail(Status status);
  bool isStopped() const;
  Status stopped() const;

  Kind kind;
  RunMode mode;
  Arrivals *arrivals;
  TaskMemory &memory;
  bool isInner;                ///< a node of another task asks for it
  std::span<const Root> roots; ///< the caller's
  std::span<const Edge> wanted;
  Gradients *results = nullptr;
  size_t visited = 0;

  bool hasLanes = false;      ///< beside the caller's
  Task *outer = nullptr;      ///< the next around it that has lanes
  std::atomic<int> active{0}; ///< lanes
  std::atomic<bool> hasFailed{false};
  mutable std::mutex mutex; ///< guards the error and the callbacks
  Status error;             ///< the first
  bool isDone = false;      ///< no lane is active; guarded by the own mailbox
};

/// Fits a gradient to what an input of a node takes: sums a shape that was
/// expanded, casts the type, moves a number to the device.
Status conform(const Node &node, int input, Value &gradient);

} // namespace tandem::graph

#endif
