//===- Node.h - the nodes of a run-time graph -----------------------------===//
//
// A graph of what was computed, from results back to leaves, over which
// gradients flow (Engine.h). A node takes a gradient for each of its inputs
// (the results of its forward) and gives one for each of its edges (to what its
// forward was computed of). Compiled programs are nodes (CallNode.h), and so is
// whatever a program wants to put between them.
//
// Order. Nodes are numbered per thread as they are made; of nodes that are
// ready, the one with the larger number runs first, so that the backward runs
// in the reverse order of the forward. Leaves run before all others.
//
// Streams. A node's work belongs on the stream of its forward: on each device,
// the stream that was current when its first input there was added. That stream
// is current while the node and its hooks run.
//
// A graph is built and run by one thread at a time.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_NODE_H
#define TANDEM_RUNTIME_GRAPH_NODE_H

#include "runtime/Backend.h"
#include "runtime/Tensor.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::graph {

using runtime::describe;
using runtime::Device;
using runtime::Stream;
using runtime::Tensor;

class Node;

/// An input of a node; or nothing.
struct Edge {
  std::shared_ptr<Node> node;
  int input = 0;

  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Edge &) const = default;
};

/// Gradients in the order of a node's inputs or edges. Undefined: none.
using Gradients = std::vector<Tensor>;

/// What a gradient at a node's input must be.
struct InputInfo {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  Device device;
  /// The device's current stream when the input was added.
  Stream stream = nullptr;
};

class Node : public std::enable_shared_from_this<Node> {
public:
  /// May replace gradients, but not their number; an error ends the backward.
  using PreHook = std::function<Status(Gradients &inputs)>;
  using PostHook =
      std::function<Status(const Gradients &outputs, const Gradients &inputs)>;

  Node();
  virtual ~Node();
  Node(const Node &) = delete;
  Node &operator=(const Node &) = delete;

  /// For messages and traces.
  virtual std::string name() const = 0;
  /// Leaves collect gradients; they run before all other nodes.
  virtual bool isLeaf() const { return false; }
  /// Takes a gradient for each input, some of them undefined, and gives one for
  /// each edge, or an undefined one. Queues device work on current streams.
  /// With `retain`, the node can run again.
  virtual Status run(Gradients inputs, Gradients &outputs, bool retain) = 0;

  /// Adds an input for gradients of values like `value`; returns its number.
  /// All inputs of one device are of one stream: else an error that names the
  /// node.
  Result<int> addInput(const Tensor &value);
  /// Adds an edge to what the forward was computed of, maybe none.
  void addEdge(Edge edge);

  const std::vector<InputInfo> &inputs() const { return inputs_; }
  const std::vector<Edge> &edges() const { return edges_; }
  /// Rises with each node that this thread makes.
  uint64_t number() const { return number_; }
  /// The stream that the node's work on `device` belongs on; none if it has no
  /// input there.
  std::optional<Stream> stream(Device device) const;

  void addPreHook(PreHook hook) { preHooks_.push_back(std::move(hook)); }
  void addPostHook(PostHook hook) { postHooks_.push_back(std::move(hook)); }
  const std::vector<PreHook> &preHooks() const { return preHooks_; }
  const std::vector<PostHook> &postHooks() const { return postHooks_; }

private:
  uint64_t number_;
  std::vector<InputInfo> inputs_;
  std::vector<Edge> edges_;
  std::vector<PreHook> preHooks_;
  std::vector<PostHook> postHooks_;
};

/// A tensor with what it was made of: where its gradient goes.
struct Value {
  Tensor tensor;
  Edge edge;
};

/// Collects the gradient of a tensor that nothing made. It has the tensor's
/// strides if these are dense in whatever order, else it is row-major. The
/// first gradient is taken over if it lies like that and nobody else has it;
/// later ones are added where it is.
class Leaf : public Node {
public:
  /// A leaf for `value`, whose stream is the current one of its device: that
  /// on which it is used first.
  static Result<Value> make(std::string name, const Tensor &value);

  std::string name() const override { return name_; }
  bool isLeaf() const override { return true; }
  Status run(Gradients inputs, Gradients &outputs, bool retain) override;

  /// What was collected so far; undefined: nothing.
  const Tensor &gradient() const { return gradient_; }
  /// Returns what came as a gradient of the tensor as it should lie.
  Result<Tensor> laidOut(const Tensor &gradient) const;
  void clear() { gradient_ = Tensor(); }

private:
  explicit Leaf(std::string name, const Tensor &value);
  std::string name_;
  runtime::Extents strides_; ///< of a gradient
  Tensor gradient_;
};

} // namespace tandem::graph

#endif
