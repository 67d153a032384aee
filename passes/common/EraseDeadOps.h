//===- EraseDeadOps.h - what nothing uses goes ----------------------------===//
#ifndef TANDEM_PASSES_COMMON_ERASEDEADOPS_H
#define TANDEM_PASSES_COMMON_ERASEDEADOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Erases the ops of `block` whose results nothing uses. One walk. Returns how
/// many there were.
unsigned eraseDeadOps(mlir::Block &block);

/// The same of a function, which has one block.
unsigned eraseDeadOps(mlir::func::FuncOp func);

} // namespace tandem

#endif
