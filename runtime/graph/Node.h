//===- Node.h - the nodes of a run-time graph -----------------------------===//
//
// A graph of what was computed, from results back to leaves, over which
// gradients flow (Engine.h). A node takes a gradient for each of its inputs
// (the results of its forward) and gives one for each of its edges (to what its
// forward was computed of). Compiled programs are nodes (CallNode.h), so are
// functions of the user (Function.h) and a few ops on tensors (Ops.h).
//
// Numbers. Nodes are numbered per thread as they are made; of nodes that are
// ready, the one with the larger number runs first, so that the backward runs
// in the reverse order of the forward. Leaves run before all others. The
// topological number is the length of the longest path to a node without edges.
//
// Streams. A node's work belongs on the stream of its forward: on each device,
// the stream that was current when its first input there was added. That stream
// is current while the node and its hooks run.
//
// Threads. One thread at a time changes a node: its edges and inputs. Several
// threads may run backwards over the same nodes, and add and remove hooks
// meanwhile.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_NODE_H
#define TANDEM_RUNTIME_GRAPH_NODE_H

#include "runtime/device/Backend.h"
#include "runtime/tensor/Tensor.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::graph {

using runtime::describe;
using runtime::Device;
using runtime::Stream;
using runtime::Tensor;

class GradientMap;
class Node;
struct NodeHooks;

/// An input of a node; or nothing.
struct Edge {
  std::shared_ptr<Node> node;
  int input = 0;

  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Edge &) const = default;
};

/// A tensor with what it was made of: where its gradient goes.
struct Value {
  Value() = default;
  Value(Tensor tensor) : tensor(std::move(tensor)) {}
  Value(Tensor tensor, Edge edge)
      : tensor(std::move(tensor)), edge(std::move(edge)) {}

  bool defined() const { return tensor.defined(); }

  Tensor tensor;
  Edge edge;
};

/// Gradients in the order of a node's inputs or edges. Undefined: none. They
/// have edges where a graph of the backward is made.
using Gradients = std::vector<Value>;

/// What a gradient at a node's input must be.
struct InputInfo {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  Device device;
  /// The device's current stream when the input was added.
  Stream stream = nullptr;
  /// No gradient goes there: what is given is dropped.
  bool isPlaceholder = false;
};

/// How a node runs.
struct RunMode {
  bool retain = false;      ///< the node can run again
  bool createGraph = false; ///< what it gives has edges
  /// Where leaves collect; null: in themselves.
  GradientMap *collected = nullptr;
};

/// What a program that captures a graph may assume of a node.
struct Traits {
  bool isTraceable = false; ///< it computes with ops of the graph alone
  /// What it does follows from its saved values and from parameters that no
  /// data decide.
  bool isStateTransparent = false;
};

/// What a program that captures a graph is told of a node (Write.h).
struct Described {
  explicit Described(const char *kind = "node") : kind(kind) {}

  const char *kind; ///< "node", "program", "gradient", "op", "function", "leaf"
  /// Of a program: the model's name, a digest of its graph, and what is the
  /// same for all calls of one loaded model.
  std::string model, graph;
  const void *instance = nullptr;
  /// Names of inputs and edges: what the program calls them. May be shorter
  /// than these.
  std::vector<std::string> inputs, edges;
  std::optional<double> factor; ///< of the op "scale"
};

/// Where a node was made, noted under anomaly mode.
struct Trace {
  std::string location;
  std::string parent; ///< the node that ran then, with its location; or empty
};

class Node : public std::enable_shared_from_this<Node> {
public:
  Node();
  virtual ~Node();
  Node(const Node &) = delete;
  Node &operator=(const Node &) = delete;

  /// For messages and traces.
  virtual std::string name() const = 0;
  /// Leaves collect gradients; they run before all other nodes.
  virtual bool isLeaf() const { return false; }
  /// A backward of the caller's: it may not write the gradients that it gets.
  virtual bool isCallers() const { return false; }
  /// Takes a gradient for each input, some of them undefined, and gives one for
  /// each edge, or an undefined one. Queues device work on current streams.
  /// May take `inputs` apart.
  virtual Status run(Gradients &inputs, Gradients &outputs,
                     const RunMode &mode) = 0;

  /// Says before a run that the saved values go with it.
  virtual void announceRelease() {}
  /// Frees the saved values, after a run that does not retain them.
  virtual void release() {}
  virtual int64_t savedBytes() const { return 0; }
  /// Returns the saved values, for capture.
  virtual Result<std::vector<Value>> savedValues();
  /// Exchanges the saved values with others of the same types and shapes.
  virtual Status swapSaved(std::vector<Value> &values);
  /// Runs with other saved values, and has its own again afterwards.
  Status runWith(std::vector<Value> saved, Gradients &inputs,
                 Gradients &outputs, const RunMode &mode);
  virtual Traits traits() const { return {}; }
  virtual Described described() const { return Described("node"); }
  /// The same results over runs and numbers of threads.
  virtual bool isDeterministic() const { return true; }

  /// Adds an input for gradients of values like `value`; returns its number.
  /// All inputs of one device are of one stream: else an error that names the
  /// node.
  Result<int> addInput(const Tensor &value);
  Result<int> addInput(artifact::DType dtype, std::span<const int64_t> shape,
                       Device device = {});
  /// Adds an input that no gradient goes to; returns its number.
  int addPlaceholder();
  /// An error if another node leads there.
  Status clearInputs();

  /// Adds an edge to what the forward was computed of, maybe none. The edges of
  /// a node that another node leads to cannot be changed: its topological
  /// number would be wrong.
  Status addEdge(Edge edge);
  Status setEdge(size_t index, Edge edge);
  Status setEdges(std::vector<Edge> edges);

  const std::vector<InputInfo> &inputs() const { return inputs_; }
  const std::vector<Edge> &edges() const { return edges_; }
  /// True if the gradient of edge `index` is wanted by somebody; an error if
  /// there is none of that number. With `isForTask`, by the backward that runs
  /// the node now.
  Result<bool> shouldCompute(size_t index, bool isForTask = false) const;
  /// The same of any edge of the ranges [begin, end).
  Result<bool> shouldCompute(std::span<const std::pair<size_t, size_t>> ranges,
                             bool isForTask = false) const;

  /// Rises from 0 with each node that this thread makes, unless it was set.
  uint64_t number() const { return number_; }
  void setNumber(uint64_t number) { number_ = number; }
  /// Identifies the node together with the number that it was made with.
  uint32_t thread() const { return thread_; }
  uint32_t topologicalNumber() const { return topologicalNumber_; }

  /// The stream that the node's work on `device` belongs on; none if it has no
  /// input there.
  std::optional<Stream> stream(Device device) const;
  /// True if an input is not on the host.
  bool usesDevices() const { return usesDevices_; }

  /// The hooks (Hooks.h), null where there are none.
  NodeHooks *hooks() const { return hooks_.load(std::memory_order_acquire); }
  NodeHooks &makeHooks();

  const Trace *trace() const { return trace_.get(); }

private:
  Status checkEdge(const Edge &edge) const;
  Status checkParents(const char *what) const;
  void enter(const Edge &edge);
  static void leave(const Edge &edge);
  Result<int> add(InputInfo info);

  uint64_t number_;
  uint32_t thread_;
  uint32_t topologicalNumber_ = 0;
  bool usesDevices_ = false;
  mutable std::atomic_flag parentLock_; ///< guards `parent_`
  std::atomic<int> parents_{0};         ///< edges that lead here
  std::weak_ptr<Node> parent_;          ///< the first of them
  std::vector<InputInfo> inputs_;
  std::vector<Edge> edges_;
  std::atomic<NodeHooks *> hooks_{nullptr}; ///< owned
  std::unique_ptr<Trace> trace_;
};

/// Returns "'name' (3 of thread 0)".
std::string describe(const Node &node);

/// Returns the edges of values: invalid ones for values without history.
std::vector<Edge> edgesOf(std::span<const Value> values);

/// Adds an input like `value.tensor` to the node, and leads the value there.
Status makeEdge(Value &value, const std::shared_ptr<Node> &node);

} // namespace tandem::graph

#endif
