//===- Leaf.h - where gradients are collected -----------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_LEAF_H
#define TANDEM_RUNTIME_GRAPH_LEAF_H

#include "runtime/graph/Node.h"

#include <mutex>
#include <unordered_map>

namespace tandem::graph {

/// Collects the gradient of a tensor that nothing made. It has the tensor's
/// strides if these are dense in whatever order, else it is row-major. The
/// first gradient is taken over if it lies like that and nobody else has it;
/// later ones are added where it is, or make a new one where a graph of the
/// backward is made. Threads may run it at the same time.
class Leaf : public Node {
public:
  /// A leaf for `value`, whose stream is the current one of its device: that
  /// on which it is used first.
  static Result<Value> make(std::string name, const Tensor &value);

  std::string name() const override { return name_; }
  bool isLeaf() const override { return true; }
  Described described() const override { return Described("leaf"); }
  Status run(Gradients &inputs, Gradients &outputs,
             const RunMode &mode) override;

  /// What was collected so far; undefined: nothing. Not while another thread
  /// runs a backward.
  const Tensor &gradient() const { return gradient_.tensor; }
  /// The same with its history, at any time.
  Value value() const;
  void setValue(Value gradient);
  /// Returns what came as a gradient of the tensor as it should lie.
  Result<Tensor> laidOut(const Tensor &gradient) const;
  void clear() { setValue({}); }

private:
  explicit Leaf(std::string name, const Tensor &value);
  Status add(Value &sum, Value &gradient, const RunMode &mode) const;
  std::string name_;
  runtime::Extents strides_; ///< of a gradient
  mutable std::mutex mutex;  ///< guards the gradient
  Value gradient_;
};

/// Gradients of leaves that are not kept in the leaves. Threads may use it at
/// the same time.
class GradientMap {
public:
  /// Calls `add` with the place of the leaf's gradient.
  Status add(const std::shared_ptr<Leaf> &leaf,
             const std::function<Status(Value &sum)> &add);
  /// What came for the leaf; undefined: nothing.
  Value find(const Node &leaf) const;
  /// All, in the order in which they came first.
  std::vector<std::pair<std::shared_ptr<Leaf>, Value>> all() const;
  void clear();

private:
  mutable std::mutex mutex;
  std::vector<std::pair<std::shared_ptr<Leaf>, Value>> gradients;
  std::unordered_map<const Node *, size_t> places;
};

} // namespace tandem::graph

#endif
