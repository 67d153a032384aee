//===- Leaf.h - where gradients are collected -----------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_LEAF_H
#define TANDEM_RUNTIME_GRAPH_LEAF_H

#include "runtime/graph/Node.h"

#include <mutex>

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
  std::string name_;
  runtime::Extents strides_; ///< of a gradient
  mutable std::mutex mutex;  ///< guards the gradient
  Value gradient_;
};

} // namespace tandem::graph

#endif
