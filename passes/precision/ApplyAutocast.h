//===- ApplyAutocast.h - mixed precision, written out ---------------------===//
#ifndef TANDEM_PASSES_PRECISION_APPLYAUTOCAST_H
#define TANDEM_PASSES_PRECISION_APPLYAUTOCAST_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Is told of each op that computes floats, when it has its type, and why it is
/// that.
using TypeObserver =
    llvm::function_ref<void(mlir::Operation *op, llvm::StringRef why)>;

/// What the pass does (Passes.td).
mlir::LogicalResult applyAutocast(mlir::ModuleOp module,
                                  TypeObserver observer = nullptr);

} // namespace tandem

#endif
