//===- Strides.cpp - how a tensor's elements lie --------------------------===//
#include "runtime/tensor/Strides.h"

#include <algorithm>
#include <array>

namespace tandem::runtime {

Extents rowMajorStrides(std::span<const int64_t> shape) {
  Extents strides(shape);
  int64_t step = 1;
  for (int i = strides.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
  return strides;
}

std::optional<Extents> denseOrder(std::span<const int64_t> shape,
                                  std::span<const int64_t> strides) {
  std::array<int, maxRank> byStride;
  auto rank = static_cast<int>(shape.size());
  for (int i = 0; i < rank; ++i)
    byStride[i] = i;
  // What has one index has no distance: it may stand anywhere.
  auto distance = [&](int i) { return shape[i] == 1 ? 0 : strides[i]; };
  std::sort(byStride.begin(), byStride.begin() + rank, [&](int a, int b) {
    int64_t x = distance(a), y = distance(b);
    return x != y ? x > y : a < b;
  });
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    int64_t size = shape[byStride[i]];
    if (size == 0 || (size != 1 && strides[byStride[i]] != step))
      return std::nullopt;
    step *= size;
  }
  Extents order(shape);
  for (int i = 0; i < rank; ++i)
    order[i] = byStride[i];
  return order;
}

Extents gradientStrides(const Tensor &leaf) {
  if (denseOrder(leaf.shape(), leaf.strides()))
    return Extents(leaf.strides());
  return rowMajorStrides(leaf.shape());
}

bool areSamePlaces(std::span<const int64_t> shape, std::span<const int64_t> a,
                   std::span<const int64_t> b) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && a[i] != b[i])
      return false;
  return true;
}

Result<Tensor> permuted(const Tensor &tensor, const Extents &order) {
  Extents shape(tensor.shape()), strides(tensor.strides());
  for (int i = 0; i < order.size(); ++i) {
    auto from = static_cast<size_t>(order[i]);
    shape[i] = tensor.shape()[from];
    strides[i] = tensor.strides()[from];
  }
  return tensor.view(shape, strides);
}

Result<Tensor> copyWithStrides(const Tensor &tensor, const Extents &strides) {
  Result<Tensor> copy =
      Tensor::empty(tensor.dtype(), tensor.shape(), tensor.device());
  if (copy)
    copy = copy->view(tensor.shape(), strides);
  if (copy)
    if (Status status = copy->copyFrom(tensor); !status)
      return status;
  return copy;
}

Result<Tensor> withStrides(const Tensor &tensor, const Extents &strides) {
  if (areSamePlaces(tensor.shape(), tensor.strides(), strides))
    return tensor.view(tensor.shape(), strides);
  return copyWithStrides(tensor, strides);
}

} // namespace tandem::runtime
