//===- Precision.h - what an op's `precision` can say ---------------------===//
#ifndef TANDEM_IR_OPS_PRECISION_H
#define TANDEM_IR_OPS_PRECISION_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// Of a conv2d_filter_grad of f16 or bf16: its result is its sums, in f32.
inline constexpr llvm::StringLiteral kSumsPrecision = "sums";

} // namespace tandem

#endif
