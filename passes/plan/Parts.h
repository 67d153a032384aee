//===- Parts.h - slices that cost nothing between kernels -----------------===//
//
// In a planned program a value between kernels is a kernel's result, a free
// view of one, or a part of one: a slice of which the elements lie side by
// side, and begin where a buffer may begin. Its buffer is the part of the
// other's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_PARTS_H
#define TANDEM_PASSES_PLAN_PARTS_H

#include "ir/Ops.h"

namespace tandem {

/// The number of elements of the operand in front of those of the slice, if
/// these lie side by side; none otherwise.
std::optional<int64_t> contiguousStart(SliceOp slice);

/// The same in bytes, where a buffer may begin.
std::optional<int64_t> partOffset(SliceOp slice);

/// True of what may stand between the kernels of a planned program, and shows
/// the storage of its operand: free views, and parts.
bool isFreeOrPart(mlir::Operation *op);

/// What `value` shows of a planned program's: an argument, a constant, or the
/// result of a kernel or launch, and which byte of it comes first.
struct Shown {
  mlir::Value source;
  int64_t offset = 0;
  bool isPart = false; ///< not all of it
};
Shown shownBy(mlir::Value value);

} // namespace tandem

#endif
