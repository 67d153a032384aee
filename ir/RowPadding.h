//===- RowPadding.h - rows that begin at multiples of 16 bytes ------------===//
//
// A tensor of 50,257 columns of bf16 has rows of 100,514 bytes: what fetches 16
// bytes at a time, as products for CUDA do, can't have it. A kernel that yields
// it with zeros at the ends of rows,
//
//   %p = tandem.pad %y low [0, 0] high [0, 7] ... {tandem.row_padding}
//
// stores the rows of %y that far apart, and those that read it take a slice.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_ROWPADDING_H
#define TANDEM_IR_ROWPADDING_H

#include "mlir/IR/Operation.h"

namespace tandem {

/// `tandem.row_padding` on a pad, set by tandem-pad-rows: it is not computed
/// with, but says how rows are stored.
inline constexpr llvm::StringLiteral kRowPaddingAttr = "tandem.row_padding";

/// Rows begin at multiples of so many bytes.
inline constexpr int64_t kRowBytes = 16;

/// The zeros that each row has to end with; 0 if rows are whole already.
int64_t rowPaddingOf(mlir::RankedTensorType type);

/// Whether `op` is a pad of the ends of rows by that many zeros, and says that
/// it is one.
bool isRowPadding(mlir::Operation *op);

/// Checks that an op with the attribute is such a pad.
mlir::LogicalResult verifyRowPadding(mlir::Operation *op,
                                     mlir::NamedAttribute attribute);

} // namespace tandem

#endif
