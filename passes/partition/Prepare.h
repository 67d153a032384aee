//===- Prepare.h - what inference computes once ---------------------------===//
#ifndef TANDEM_PASSES_PARTITION_PREPARE_H
#define TANDEM_PASSES_PARTITION_PREPARE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Moves what `evaluate` computes of params, states and constants alone into
/// the function @prepare in front of it, whose results (role `prepared`)
/// `evaluate` takes behind its other arguments, which all stay. Moved is what
/// takes longer to compute than to read: no views, nothing that is larger than
/// what it is made of for nothing. Returns @prepare; null if there is nothing
/// to move.
mlir::func::FuncOp buildPrepare(mlir::func::FuncOp evaluate);

} // namespace tandem

#endif
