//===- Strides.h - how a tensor's elements lie ----------------------------===//
//
// Row-major strides, and the rule for gradients: a gradient lies as its leaf
// does, so that both can be gone through side by side. It has the leaf's
// strides if the leaf's elements fill a piece of memory, each once, in whatever
// order of dimensions; else it is row-major.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TENSOR_STRIDES_H
#define TANDEM_RUNTIME_TENSOR_STRIDES_H

#include "runtime/tensor/Tensor.h"

#include <optional>

namespace tandem::runtime {

/// Returns the strides of a row-major tensor.
Extents rowMajorStrides(std::span<const int64_t> shape);

/// Returns the dimensions in the order in which a row-major tensor would have
/// them, the one with the largest distances first, if elements with these
/// strides fill a piece of memory, each once; otherwise, or if there are none,
/// nothing.
std::optional<Extents> denseOrder(std::span<const int64_t> shape,
                                  std::span<const int64_t> strides);

/// Returns the strides of a gradient of `leaf`.
Extents gradientStrides(const Tensor &leaf);

/// True if the strides lead to the same places: those of a dimension with one
/// index do not count.
bool areSamePlaces(std::span<const int64_t> shape, std::span<const int64_t> a,
                   std::span<const int64_t> b);

/// Returns the tensor with its dimensions in another order.
Result<Tensor> permuted(const Tensor &tensor, const Extents &order);

/// Returns a copy with these strides, which are those of a dense order.
Result<Tensor> copyWithStrides(const Tensor &tensor, const Extents &strides);

/// Returns the tensor with these strides: over its own storage where they lead
/// to the same places, otherwise a copy.
Result<Tensor> withStrides(const Tensor &tensor, const Extents &strides);

} // namespace tandem::runtime

#endif
