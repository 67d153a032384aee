//===- Sum.h - sums of gradients, in the order of streams -----------------===//
//
// Internal to the graph. What several nodes give for one input is added on the
// stream of the node that takes it. A gradient that was made on another stream
// is waited for just before it is used, and only up to the point where it was
// made: branches overlap until their gradients meet.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_SUM_H
#define TANDEM_RUNTIME_GRAPH_SUM_H

#include "runtime/graph/Node.h"

namespace tandem::graph {

/// sum = x + y on the current stream: same type, shape and device. `sum` is
/// `x`, or undefined: then a new tensor, which has x's strides if these are
/// dense in whatever order.
Status addTensors(Tensor &sum, const Tensor &x, const Tensor &y);

/// The gradients that have come for one input of a node.
class Sum {
public:
  Sum() = default;
  Sum(Sum &&other) noexcept : parts(std::move(other.parts)) {}
  ~Sum();

  /// Adds a gradient that was made on `producer`, for use on `consumer`.
  Status add(Tensor gradient, Stream producer, Stream consumer);
  /// The sum, on `consumer`, which is current; undefined if there was nothing.
  Result<Tensor> take(Stream consumer);

private:
  struct Part {
    Tensor gradient;
    runtime::Fence made = nullptr; ///< null: on the consumer's stream
  };
  std::vector<Part> parts;
};

} // namespace tandem::graph

#endif
