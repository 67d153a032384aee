//===- Modes.h - what a thread's graphs are made and run under ------------===//
//
// Each thread has its own. All nodes of a backward see those of the thread that
// asked for it, also where they run on a device's thread.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_MODES_H
#define TANDEM_RUNTIME_GRAPH_MODES_H

#include "runtime/graph/Node.h"
#include "runtime/model/Model.h"

#include <memory>
#include <string>

namespace tandem::graph {

/// What is looked for in gradients. Off, it costs nothing.
struct Anomaly {
  bool isOn = false;    ///< nodes note where they were made
  bool findsNan = true; ///< what a node gives is looked at
  bool findsInfinity = false;
};

/// Gets a call before and after each node of a backward.
struct Profiler {
  /// `inputs` is null unless `wantsInputs`.
  std::function<void(const Node &node, const Gradients *inputs)> begin;
  std::function<void(const Node &node)> end;
  bool wantsInputs = false;
};

struct Modes {
  bool grad = true; ///< calls make nodes
  bool deterministic = false;
  bool deviceThreads = true; ///< nodes of several devices run side by side
  Anomaly anomaly;
  std::string location; ///< of the forward, for nodes that are made
  std::shared_ptr<const runtime::SavedHooks> savedHooks;
  std::shared_ptr<const Profiler> profiler;
};

/// Those of the calling thread.
Modes &modes();

/// The node that runs on this thread, or null.
Node *currentNode();
Node *exchangeCurrentNode(Node *node);

/// Sets grad mode until it ends.
class GradModeScope {
public:
  explicit GradModeScope(bool on) : before(modes().grad) { modes().grad = on; }
  ~GradModeScope() { modes().grad = before; }
  GradModeScope(const GradModeScope &) = delete;
  GradModeScope &operator=(const GradModeScope &) = delete;

private:
  bool before;
};

/// Fails if deterministic mode is on and the node is none of it.
Status checkDeterministic(const Node &node);

/// Returns the index of the first element that anomaly mode looks for, or -1.
Result<int64_t> findAnomaly(const Tensor &tensor, const Anomaly &anomaly);

} // namespace tandem::graph

#endif
