//===- StridedLoop.cpp - the fewest dimensions of a strided copy ----------===//
//
// See StridedLoop.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/StridedLoop.h"

#include <algorithm>
#include <cstdlib>

namespace tandem::cuda {

StridedLoop::StridedLoop(const runtime::StridedCopy &copy)
    : rowBytes(copy.elementBytes) {
  for (size_t d = copy.sizes.size(); d-- > 0;) {
    isEmpty |= copy.sizes[d] == 0;
    if (copy.sizes[d] != 1)
      dimensions.push_back(
          {copy.sizes[d], copy.toStrides[d], copy.fromStrides[d]});
  }
  if (isEmpty) {
    dimensions.clear();
    return;
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension &a, const Dimension &b) {
              return std::abs(a.to) < std::abs(b.to);
            });
  std::vector<Dimension> merged;
  for (const Dimension &one : dimensions) {
    Dimension *inner = merged.empty() ? nullptr : &merged.back();
    if (!inner && one.to == rowBytes && one.from == rowBytes)
      rowBytes *= one.size;
    else if (inner && one.to == inner->to * inner->size &&
             one.from == inner->from * inner->size)
      inner->size *= one.size;
    else
      merged.push_back(one);
  }
  dimensions = std::move(merged);
}

int64_t StridedLoop::wordBytes(const void *to, const void *from) const {
  auto bits = reinterpret_cast<uint64_t>(to) |
              reinterpret_cast<uint64_t>(from) |
              static_cast<uint64_t>(rowBytes) | 8;
  for (const Dimension &one : dimensions)
    bits |= static_cast<uint64_t>(one.to) | static_cast<uint64_t>(one.from);
  return static_cast<int64_t>(bits & (~bits + 1)); // the lowest bit
}

} // namespace tandem::cuda
