//===- GraphOps.h - ops of a run-time graph in the dialect ----------------===//
//
// Internal to the linker.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_LINK_GRAPHOPS_H
#define TANDEM_COMPILER_LINK_GRAPHOPS_H

#include "compiler/import/GraphFile.h"
#include "ir/Expr.h"

namespace tandem::link {

/// The element type of this name that the run-time graph has ops for, or null.
mlir::Type elementOf(llvm::StringRef name, mlir::OpBuilder &builder);

/// True if the op makes `result` of `x`; what has one shape was compared.
bool canGive(const GraphNode &one, mlir::RankedTensorType x,
             mlir::RankedTensorType result);

/// The op `one` of the run-time graph in ops of the dialect.
Expr buildOp(const GraphNode &one, llvm::ArrayRef<Expr> operands,
             mlir::RankedTensorType result);

} // namespace tandem::link

#endif
