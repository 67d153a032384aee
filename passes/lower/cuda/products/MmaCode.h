//===- MmaCode.h - tensor cores and asynchronous copies as formulas -------===//
//
// Products of 16 x 16 by 16 x 8 elements of f16 or bf16 in f32, by a warp
// (PTX: mma.sync.m16n8k16), with the matrices in shared memory. A thread has of
// each matrix a few elements. With group = lane / 4 and pair = 2 * (lane % 4):
// - of the sums, those in rows group and group + 8 and columns pair and
//   pair + 1 (two of the first row, then two of the second);
// - of the left matrix, four registers of two elements each: rows group and
//   group + 8 at columns pair, then the same rows at columns pair + 8;
// - of the right matrix two: rows pair and pair + 8, of column group.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_MMACODE_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_MMACODE_H

#include "passes/lower/cuda/ThreadCode.h"

namespace tandem::lower::cuda {

/// What mma.sync takes of a pair: a vector of f16, or the bits of two bf16.
mlir::Value mmaRegister(ThreadCode &code, mlir::Value pair);

/// mma.sync by a warp: left * right + sums, four registers, two, and four f32
/// (16 x 8 sums). 16 k of f16 or bf16; of f32, as tf32, 8.
llvm::SmallVector<mlir::Value> mmaSync(ThreadCode &code, mlir::Type element,
                                       mlir::ValueRange left,
                                       mlir::ValueRange right,
                                       mlir::ValueRange sums);

class MmaCode {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;

  /// `element` is f16 or bf16.
  MmaCode(ThreadCode &code, mlir::Type element)
      : code(code), element(element) {}

  /// Rows of `stride` elements in shared memory: a memref of rank 1. With a
  /// stride of an odd multiple of 8 elements of 16 bits, eight rows that are
  /// loaded at once lie in different banks.
  struct Matrix {
    Value memory;
    int64_t stride;
    Value first; ///< position of the first row
    Value at(ThreadCode &code, Value row, Value column) const {
      return code.add(code.add(first, code.mul(row, stride)), column);
    }
  };
  /// The left matrix at `row` and `column` of `matrix`: four registers.
  Values loadLeft(const Matrix &matrix, Value row, Value column);
  /// Two right matrices side by side, 16 columns: two registers each. The rows
  /// of the right matrix are columns of `matrix`: those from `column` on of its
  /// rows from `row` on.
  Values loadRightTransposed(const Matrix &matrix, Value row, Value column);
  /// The same where the rows are rows of `matrix`.
  Values loadRight(const Matrix &matrix, Value row, Value column);

  /// left * right + sums; four, two and four values.
  Values multiplyAdd(mlir::ValueRange left, mlir::ValueRange right,
                     mlir::ValueRange sums) {
    return mmaSync(code, element, left, right, sums);
  }
  /// A register of two elements, from f32.
  Value pack(Value first, Value second);

private:
  Values load(const Matrix &matrix, Value row, Value column, bool transpose);

  ThreadCode &code;
  mlir::Type element;
};

/// Starts the copy of `elements` neighbours (of 4, 8 or 16 bytes together,
/// which both sides are aligned to) from global to shared memory; zeros where
/// `isThere` does not hold, if given.
void copyAsync(ThreadCode &code, mlir::Value from, mlir::Value fromAt,
               mlir::Value to, mlir::Value toAt, int64_t elements,
               mlir::Value isThere);
/// Closes the group of the copies that this thread has started.
void commitCopies(ThreadCode &code);
/// Waits until at most `groups` groups of this thread's copies are under way.
void waitForCopies(ThreadCode &code, int64_t groups);

} // namespace tandem::lower::cuda

#endif
