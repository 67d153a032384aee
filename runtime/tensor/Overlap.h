//===- Overlap.h - do strided tensors share memory? -----------------------===//
//
// Exact answers for tensors of any strides: two halves or two interleaved
// columns of one storage share nothing, although their address ranges meet. The
// question is a bounded linear equation, which is hard in general; every layout
// that strides of row-major tensors give is answered in a few steps. Beyond
// `overlapWork` steps the answer is "yes", which refuses a call rather than
// letting it write what another argument reads.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TENSOR_OVERLAP_H
#define TANDEM_RUNTIME_TENSOR_OVERLAP_H

#include "runtime/tensor/Tensor.h"

namespace tandem::runtime {

/// The steps after which two tensors count as sharing memory.
inline constexpr int64_t overlapWork = 1 << 16;

/// The addresses [low, high) between which a tensor's elements lie.
struct AddressRange {
  uintptr_t low = 0, high = 0;
  bool meets(const AddressRange &other) const {
    return low < other.high && other.low < high;
  }
};

/// Returns the addresses of the tensor; empty if it has no elements, or if its
/// storage does not have them.
AddressRange addressRange(const Tensor &tensor);

/// True if an element of `a` and one of `b` have a byte in common.
bool shareMemory(const Tensor &a, const Tensor &b);

/// True if two elements of the tensor have a byte in common.
bool overlapsItself(const Tensor &tensor);

} // namespace tandem::runtime

#endif
