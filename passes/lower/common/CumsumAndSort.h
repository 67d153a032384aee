//===- CumsumAndSort.h - what targets share of sums and order of lines ----===//
#ifndef TANDEM_PASSES_LOWER_COMMON_CUMSUMANDSORT_H
#define TANDEM_PASSES_LOWER_COMMON_CUMSUMANDSORT_H

#include "passes/lower/common/AnchorCode.h"

#include "ir/Ops.h"

namespace tandem::lower {

/// The type of sums of lines: of floats f64, so that a long line loses nothing.
mlir::Type lineSumType(mlir::Type compute);

/// i1: the order of `sort` puts the key `x` before the key `y`. NaN is above
/// all numbers.
mlir::Value standsBefore(Code &code, SortOp op, mlir::Value x, mlir::Value y);

} // namespace tandem::lower

#endif
