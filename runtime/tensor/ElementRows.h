//===- ElementRows.h - loops over strided elements ------------------------===//
//
// Internal to the runtime. Walks tensors of one shape row by row, copies
// elements between strided places of the host, and fills such places.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TENSOR_ELEMENTROWS_H
#define TANDEM_RUNTIME_TENSOR_ELEMENTROWS_H

#include "runtime/tensor/Tensor.h"

#include <array>
#include <span>

namespace tandem::runtime {

/// Calls `row(offset a, offset b, count)` for each innermost row of two tensors
/// of one shape; offsets in the strides' unit. A scalar is one row of one
/// element.
template <typename Fn>
void forEachRow(std::span<const int64_t> shape, std::span<const int64_t> a,
                std::span<const int64_t> b, Fn row) {
  for (int64_t size : shape)
    if (size == 0)
      return;
  int outer = static_cast<int>(shape.size()) - 1;
  if (outer < 0) {
    row(0, 0, 1);
    return;
  }
  std::array<int64_t, maxRank> index{};
  int64_t at = 0, bt = 0;
  while (true) {
    row(at, bt, shape[outer]);
    int d = outer - 1;
    for (; d >= 0; --d) {
      at += a[d];
      bt += b[d];
      if (++index[d] < shape[d])
        break;
      at -= a[d] * shape[d];
      bt -= b[d] * shape[d];
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

/// Returns the sizes or strides times a number.
Extents scaled(std::span<const int64_t> values, int64_t factor);

/// Copies host elements; strides in elements, sizes as `elementBytes`. The two
/// must not overlap.
void copyElements(void *to, std::span<const int64_t> toStrides,
                  const void *from, std::span<const int64_t> fromStrides,
                  std::span<const int64_t> shape, int64_t elementBytes);
/// The same with strides in bytes.
void copyStrided(void *to, std::span<const int64_t> toStrides, const void *from,
                 std::span<const int64_t> fromStrides,
                 std::span<const int64_t> shape, int64_t elementBytes);

/// Sets host elements to a number, converted as by `Tensor::to`.
void fillElements(artifact::DType dtype, void *to,
                  std::span<const int64_t> shape,
                  std::span<const int64_t> strides, double value);

} // namespace tandem::runtime

#endif
