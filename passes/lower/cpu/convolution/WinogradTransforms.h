//===- WinogradTransforms.h - the matrices of Winograd's F(4, 3) ----------===//
//
// A correlation of 6 elements with 3 taps has 4 results; as polynomials they
// are known from their values at 6 points (Winograd, "Arithmetic Complexity of
// Computations", 1980; Lavin and Gray, arXiv:1509.09308):
//   y = A^T ((G g) * (B^T d)).
// The points are 0, 5/8, -5/8, 3/2, -3/2 and infinity. With them an f32 result
// is about twice as inexact as a direct sum, with 0, 1, -1, 2, -2 four times
// (docs/rationale/winograd.md); they, their squares and cubes are exact.
//
// The same 6 points serve 3 results of 4 taps, the gradient of the taps. The
// functions take and return vectors or scalars, one for each element.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINOGRADTRANSFORMS_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINOGRADTRANSFORMS_H

#include "passes/lower/common/AnchorCode.h"

namespace tandem::lower::cpu::winograd {

using lower::Code;

/// The points, which are also the elements that a tile sees in a direction.
inline constexpr int64_t kPoints = 6;

/// B^T d of 6 elements.
Code::Values transformInput(Code &code, mlir::ValueRange d);
/// G g of 3 or 4 taps.
Code::Values transformTaps(Code &code, mlir::ValueRange g);
/// A^T m for `results`, 4 or 3, of the 6 products.
Code::Values transformProducts(Code &code, mlir::ValueRange m, int64_t results);

using Transform = llvm::function_ref<Code::Values(Code &, mlir::ValueRange)>;
/// T x T^T of a square matrix `x` in row-major order.
Code::Values transformSquare(Code &code, mlir::ValueRange x,
                             Transform transform);

} // namespace tandem::lower::cpu::winograd

#endif
