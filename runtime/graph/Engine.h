//===- Engine.h - runs the backward of a run-time graph -------------------===//
//
// Gradients flow from roots to leaves. A node runs when all gradients that can
// reach it have come; of those that are ready, leaves first, then the one made
// last. All nodes run on the calling thread; what they queue on devices runs
// when the device gets to it.
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
  Tensor gradient;
};

struct BackwardOptions {
  bool retainGraph = false; ///< nodes can run again
};

/// Runs the nodes that the roots reach; leaves collect their gradients.
Status backward(std::span<const Root> roots,
                const BackwardOptions &options = {});

/// Returns the gradients that arrive at `inputs`, one for each, instead of
/// collecting any: only nodes on the way there run. Where none arrives, the
/// result is undefined.
Result<Gradients> grad(std::span<const Root> roots,
                       std::span<const Edge> inputs,
                       const BackwardOptions &options = {});

/// During a backward of this thread: calls `callback` when it is done, on the
/// caller's streams, after these wait for everything. A callback may queue
/// more. An error outside of a backward.
Status queueCallback(std::function<Status()> callback);

} // namespace tandem::graph

#endif
