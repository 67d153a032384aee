//===- Ops.h - ops on tensors with history --------------------------------===//
//
// What lies between compiled programs: sums, products, casts and views of a few
// tensors, each a node if grad mode is on and an operand has history. Their
// gradients are made of the same ops, so that they have gradients in turn. The
// results are new tensors, but for `reshape` of a dense tensor. On devices, add
// and expand run there; the others go over the host and wait for it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_OPS_H
#define TANDEM_RUNTIME_GRAPH_OPS_H

#include "runtime/graph/Node.h"

namespace tandem::graph::ops {

// Operands of `add` and `mul` have the same type, shape and device.
Result<Value> add(const Value &x, const Value &y);
Result<Value> mul(const Value &x, const Value &y);
/// x * factor.
Result<Value> scale(const Value &x, double factor);
/// The sum of all elements, with shape []; in f64.
Result<Value> sum(const Value &x);
/// The sum over the dimensions in which `shape`, seen from the right, is 1 or
/// absent.
Result<Value> sumTo(const Value &x, std::span<const int64_t> shape);
/// The opposite: repeats elements.
Result<Value> expand(const Value &x, std::span<const int64_t> shape);
Result<Value> reshape(const Value &x, std::span<const int64_t> shape);
Result<Value> cast(const Value &x, artifact::DType dtype);
/// A copy on a device.
Result<Value> copyTo(const Value &x, Device device);

/// True if `shape` can be expanded to `to`.
bool isExpandable(std::span<const int64_t> shape, std::span<const int64_t> to);

} // namespace tandem::graph::ops

#endif
