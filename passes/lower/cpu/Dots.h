//===- Dots.h - products of few rows as dot products ----------------------===//
//
// A product whose both factors lie along k and whose left one has few rows (a
// linear layer of a few samples, whose weights are read once from memory):
// vectors run along k, and nothing is packed or turned. The item of work is a
// block of the right factor's lines.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_DOTS_H
#define TANDEM_PASSES_LOWER_CPU_DOTS_H

#include "passes/lower/common/Anchor.h"

namespace tandem::cpu {

using namespace lower;

/// Emits the product of kernel.anchor, a matmul with dimensions of `sizes`,
/// [batch..., m, n, k], whose factors are at `lhs` and `rhs`; or nothing, where
/// a product of tiles is better. Sums are made in an order that depends on the
/// sizes and the target alone.
std::optional<Work> emitDots(AnchorKernel &kernel,
                             llvm::ArrayRef<mlir::AffineExpr> lhs,
                             llvm::ArrayRef<mlir::AffineExpr> rhs,
                             llvm::ArrayRef<int64_t> sizes);

} // namespace tandem::cpu

#endif
