//===- KernelBytes.h - what a kernel moves --------------------------------===//
//
// Bytes as kernels touch them, which of large tables and slices is less than
// what these occupy.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_KERNELBYTES_H
#define TANDEM_PASSES_PLAN_KERNELBYTES_H

#include "ir/Ops.h"

namespace tandem {

/// The bytes of a tensor.
int64_t bytesOf(mlir::Value value);

/// The bytes that a kernel reads of `value`, an argument of its region: of a
/// table the rows that are taken, of what only slices read the slices.
int64_t bytesRead(mlir::Value value);

} // namespace tandem

#endif
