//===- Sum.h - sums of gradients, in the order of streams -----------------===//
//
// Internal to the graph. What several nodes give for one input is added on the
// stream of the node that takes it. A gradient that was made on another stream
// is waited for just before it is used, and only up to the point where it was
// made: branches overlap until their gradients meet. Gradients of the same
// stream are added as they come.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_SUM_H
#define TANDEM_RUNTIME_GRAPH_SUM_H

#include "runtime/graph/Node.h"

#include <utility>

namespace tandem::graph {

/// sum = x + y on the current stream: same type, shape and device. `sum` is
/// `x`, or undefined: then a new tensor, which has x's strides if these are
/// dense in whatever order.
Status addTensors(Tensor &sum, const Tensor &x, const Tensor &y);

/// Returns a row-major tensor with arbitrary contents: a small one of the host
/// that `recycle` was given on this thread, or a new one.
Result<Tensor> emptyGradient(artifact::DType dtype,
                             std::span<const int64_t> shape, Device device);
/// Keeps the memory of a gradient that nobody else has for the next one of its
/// type and shape; a few small ones for each thread.
void recycle(Value &gradient);

/// The gradients that have come for nodes, and not yet gone.
class Sums {
public:
  Sums() = default;
  Sums(const Sums &) = delete;
  Sums &operator=(const Sums &) = delete;
  ~Sums() = default;

  static constexpr int none = -1;

  /// A gradient on its way to an input of a node. It is large: it goes from
  /// hand to hand by reference, and is moved where it stays.
  struct Given {
    Given() = default;
    Given(Given &&other) noexcept { *this = std::move(other); }
    Given &operator=(Given &&other) noexcept;
    ~Given() { clear(); }

    Value gradient;
    runtime::Fence made = nullptr;       ///< null: on the consumer's stream
    runtime::Backend *backend = nullptr; ///< that made the fence
    uint64_t version = 0;                ///< of the storage when it came
    int input = 0;

    /// Notes where a gradient that was made on `producer`, for use on
    /// `consumer`, was made: on the producer's thread.
    Status note(Stream producer, Stream consumer);
    /// Drops it.
    void clear();
  };

  /// Adds a gradient to the list that begins at `list`; the consumer's stream
  /// is current, or the gradient was made on another one.
  Status add(int &list, Given &&given, bool createGraph);
  /// Sets `gradients` to the sums of the list, on current streams; undefined
  /// where there was nothing. The list is empty then. A gradient that was
  /// written since it came is an error that names `node`.
  Status take(int &list, Gradients &gradients, const Node &node,
              bool createGraph);
  /// Drops everything.
  void clear();

private:
  /// One gradient, or the sum of those of one stream.
  struct Part : Given {
    int next = none;
    bool isOwn = false; ///< nobody else has it
  };
  Status join(Part &part, Value &&gradient, bool createGraph);
  Status joinAtNode(Value &to, Part &part, bool isOwn, bool createGraph);
  int takePlace();
  void drop(int index);

  std::vector<Part> parts;
  int firstFree = none;
};

} // namespace tandem::graph

#endif
