//===- NarrowFloat.h - floats of 8 bits as numbers, in arith --------------===//
//
// f8E4M3FN and f8E5M2 are stored as bytes and computed in f32. Rounding is to
// the nearest, ties to even, once, from f32 or f64. What is too large becomes
// infinity in f8E5M2 and NaN in f8E4M3FN, which has no infinity: PyTorch's
// choice.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_NARROWFLOAT_H
#define TANDEM_IR_OPS_NARROWFLOAT_H

#include "mlir/IR/Builders.h"

namespace tandem::scalar {

/// The f32 of which `bits`, an i8, are those of a `from`.
mlir::Value fromNarrowBits(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value bits, mlir::FloatType from);
/// The bits, an i8, of `x` (f32 or f64) rounded to `to`.
mlir::Value toNarrowBits(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                         mlir::FloatType to);

} // namespace tandem::scalar

#endif
