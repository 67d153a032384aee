//===- PairCode.h - products of pairs of bf16 as formulas -----------------===//
//
// One instruction adds the products of 16 pairs of bf16 to 16 sums of f32:
// sum + left.high * right.high + left.low * right.low, each rounded. A pair is
// a word of 32 bits, the first of its numbers in the low half.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_PAIRCODE_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_PAIRCODE_H

#include "passes/lower/common/AnchorCode.h"

namespace tandem::lower::cpu {

using namespace lower;

/// Whether the target of the module around `op` has products of pairs of bf16;
/// and whether those of its two factors are made so.
bool hasPairs(mlir::Operation *op);
bool multipliesPairs(mlir::Operation *op);

namespace pairs {

/// The words of two vectors of bf16; and of two of f32 whose numbers are those
/// of bf16.
mlir::Value of(Code &code, mlir::Value low, mlir::Value high);
mlir::Value ofWide(Code &code, mlir::Value low, mlir::Value high);

/// The word at an element of a memref of bf16, of one dimension.
mlir::Value word(Code &code, mlir::Value memref, mlir::Value position);

/// A vector of words as one of f32 with their bits, and back.
mlir::Value asFloats(Code &code, mlir::Value words);
mlir::Value asWords(Code &code, mlir::Value floats);

/// 16 sums with the products of 16 words each added.
mlir::Value multiplyAdd(Code &code, mlir::Value left, mlir::Value right,
                        mlir::Value sums);

/// 16 numbers of f32 as bf16, rounded to nearest, ties to even. Subnormal ones
/// become 0, as they do in sums of products.
mlir::Value narrow(Code &code, mlir::Value vector);

} // namespace pairs
} // namespace tandem::lower::cpu

#endif
