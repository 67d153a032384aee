//===- Rounding.h - numbers of f16 and bf16 in registers of f32 -----------===//
//
// Elements of f16 and bf16 are computed in f32. A value of such a type has the
// type's precision wherever it is made: what an op computes is rounded at once,
// to the nearest, ties to even, whether it is stored or read on by an op of the
// same kernel.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_ROUNDING_H
#define TANDEM_PASSES_LOWER_COMMON_ROUNDING_H

#include "mlir/IR/Builders.h"

namespace tandem::lower {

/// `x`, in the compute type of `element`, rounded to a number of `element`;
/// `x` itself where the code says that it is one (a load, a choice among
/// loads), and for types that are their own compute type.
mlir::Value rounded(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                    mlir::Type element);

/// The same as an element of f16, bf16 or a wider type, to be stored: what was
/// rounded is not rounded again.
mlir::Value narrowed(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                     mlir::Type element);

} // namespace tandem::lower

#endif
