//===- KernelBody.h - what an emitter gets, and what it says --------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_KERNELBODY_H
#define TANDEM_PASSES_LOWER_COMMON_KERNELBODY_H

#include "ir/Ops.h"

namespace tandem::lower {

/// What the body of a kernel function has to work with.
struct KernelBody {
  /// One memref per input and per result of the kernel: static shape,
  /// row-major, 64-byte aligned; booleans are i8. A result that overwrites an
  /// input is the input's memref; no two others overlap.
  llvm::SmallVector<mlir::Value> inputs, outputs;
  /// The items to run: `index` values with 0 <= begin <= end <= Work::items.
  mlir::Value begin, end;
  /// memref<?xi8> of at least Work::scratchBytes, 64-byte aligned, private to
  /// the calling thread.
  mlir::Value scratch;
  /// What an emitter can say of an input: how many bytes ahead of where its
  /// loops load it, it shall be asked for; 0, or beyond the end: not at all.
  llvm::SmallVector<int64_t> ahead;
};

/// The attribute of an LLVM function with these numbers, joined by commas, for
/// its first parameters.
inline constexpr llvm::StringLiteral kLoadsAheadAttr = "tandem-loads-ahead";

/// How a kernel can be split.
struct Work {
  /// Independent items; the result must not depend on how they are split.
  int64_t items = 1;
  /// The least number of items that are worth a thread.
  int64_t grain = 1;
  int64_t scratchBytes = 0;
};

} // namespace tandem::lower

#endif
