//===- StridedLoop.h - the fewest dimensions of a strided copy ------------===//
//
// Brings a copy between strided elements into the form in which it is cheapest:
// dimensions that lie one after the other in both memories are one, the
// innermost is the densest, and elements are as wide as addresses and strides
// allow.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_STRIDEDLOOP_H
#define TANDEM_CUDA_STRIDEDLOOP_H

#include "runtime/device/Backend.h"

#include <vector>

namespace tandem::cuda {

struct StridedLoop {
  /// Size in elements, strides in bytes.
  struct Dimension {
    int64_t size = 1, to = 0, from = 0;
    bool operator==(const Dimension &) const = default;
  };

  explicit StridedLoop(const runtime::StridedCopy &copy);

  /// Dimensions outside of the dense rows, innermost first; none has size 1.
  std::vector<Dimension> dimensions;
  /// Bytes that are dense in both memories: at least an element.
  int64_t rowBytes = 0;
  bool isEmpty = false;

  /// Returns the widest word, up to 8 bytes, that divides the row, both
  /// addresses and all strides.
  int64_t wordBytes(const void *to, const void *from) const;
};

} // namespace tandem::cuda

#endif
