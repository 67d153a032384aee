//===- Engine.h - runs the backward of a run-time graph -------------------===//
//
// Gradients flow from roots to leaves. A node runs when all gradients that can
// reach it have come; of those that are ready, leaves first, then the one with
// the largest number. What nodes queue on devices runs when the device gets to
// it. A node may run a backward itself.
//
// Threads. Nodes of the host run on the calling thread. If there are nodes of
// several devices, or of one and the host, those of each device run on the
// device's thread (DeviceThreads.h), under the caller's modes; "ready" is meant
// of each thread then. Gradients are added in the order of one thread.
//
// Order at a node: tensor hooks as they were added, retained gradients; then,
// unless only its gradient was asked for: pre-hooks, the node, the checks of
// what it gives, hooks after accumulation (leaves), post-hooks. A gradient that
// was asked for is that after the tensor hooks, or, of a node that runs, as it
// came.
//
// What a node gives must have the type, shape and device of the input that it
// goes to; a shape that this one expands to is summed, a type is cast, a number
// on another device is moved.
//
// Streams. A call relates to the work around it as any other device call does.
// A root's gradient is read in the order of the caller's current stream; one
// that is left out is made there. Between nodes of one stream there are no
// waits; a node on another stream waits for the point where its gradient was
// made. In the end the caller's current stream of each device that was used,
// and no other, waits for every stream on which a gradient came to rest: at a
// leaf, at a node without edges, or where it was asked for.
//
// The first error ends the backward: nothing more runs, and what had come to
// nodes is dropped. An error of a node, a hook or a callback reaches the caller
// as it is, from however deep a backward inside of another; only what the
// engine itself finds wrong names the node.
//
// Memory. What the engine keeps during a backward is kept for the thread's next
// one: a backward of the same shape allocates nothing of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_ENGINE_H
#define TANDEM_RUNTIME_GRAPH_ENGINE_H

#include "runtime/graph/Node.h"

#include <span>

namespace tandem::graph {

/// Where a backward begins.
struct Root {
  Edge edge;
  /// Undefined: 1, for a scalar.
  Value gradient;
};

/// What comes to a node from outside while a backward runs.
struct Arrival {
  std::shared_ptr<Node> node;
  Gradients gradients; ///< for each of its inputs
  /// Nothing comes: the node, and what no other node gives a gradient to, does
  /// not run.
  bool isUnused = false;
};

/// Nodes whose gradients come from outside (distributed/). They count as roots
/// from the beginning, so that what they lead to waits for them. All calls come
/// from the thread of the backward.
class Arrivals {
public:
  virtual ~Arrivals() = default;
  /// The nodes, each of which one arrival will name. No edge leads to them.
  virtual std::span<const std::shared_ptr<Node>> expected() const = 0;
  /// Looks at each node that the roots and these nodes reach, before any runs.
  virtual Status look(const Node &node) = 0;
  /// Before each node: an error ends the backward.
  virtual Status goOn() = 0;
  /// Waits for the next arrival when no node is ready; none: all have come.
  virtual Result<std::optional<Arrival>> next() = 0;
};

struct BackwardOptions {
  bool retainGraph = false; ///< nodes can run again
  bool createGraph = false; ///< gradients have history; implies `retainGraph`
  Arrivals *arrivals = nullptr; ///< of a backward of all leaves alone
  GradientMap *collected =
      nullptr; ///< where leaves collect; null: in themselves
};

/// What `grad` gives where no gradient arrives.
enum class Unreached { Error, Undefined, Zeros };

/// Runs the nodes that the roots reach; leaves collect their gradients.
Status backward(std::span<const Root> roots,
                const BackwardOptions &options = {});

/// Runs only what leads to `inputs`, at least one: those that are leaves
/// collect their gradients; at others the gradients arrive at hooks and are
/// retained.
Status backwardTo(std::span<const Root> roots, std::span<const Edge> inputs,
                  const BackwardOptions &options = {});

/// Returns the gradients that arrive at `inputs`, one for each, instead of
/// collecting any: only nodes on the way there run.
Result<Gradients> grad(std::span<const Root> roots,
                       std::span<const Edge> inputs,
                       const BackwardOptions &options = {},
                       Unreached unreached = Unreached::Undefined);

/// During a backward of this thread: calls `callback` when it is done, on the
/// caller's streams, after these wait for everything. A callback may queue
/// more. An error outside of a backward.
Status queueCallback(std::function<Status()> callback);

/// True if the backward that runs `node` now wants the gradient of its edge
/// `index`; true outside of one.
bool isWantedByTask(const Node &node, size_t index);

/// True during a backward that gives gradients instead of collecting them.
bool isCapturing();

/// What the thread's last backward did.
struct Counts {
  size_t visited = 0; ///< nodes that the search for dependencies looked at
  size_t ran = 0;
};
Counts lastCounts();

} // namespace tandem::graph

#endif
