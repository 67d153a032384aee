//===- Library.h - a kernel as a call of a vendor's library ---------------===//
#ifndef TANDEM_IR_LIBRARY_H
#define TANDEM_IR_LIBRARY_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// On kernels and launches: the call of a library that computes the same, a
/// dictionary of
///   op, dtype : string, tf32, relu : unit,
///   operands, sizes, lds, batch_strides, transposes, strides, padding,
///   dilation : array<i64>; operands are positions among the inputs, then the
///   results,
///   workspace_bytes : i64, and once it has a place, workspace : i64, its
///   offset in the arena.
inline constexpr llvm::StringLiteral kLibraryAttr = "tandem.library";

} // namespace tandem

#endif
