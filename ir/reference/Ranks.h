//===- Ranks.h - runs a function on all ranks of a mesh -------------------===//
#ifndef TANDEM_IR_REFERENCE_RANKS_H
#define TANDEM_IR_REFERENCE_RANKS_H

#include "ir/reference/Evaluator.h"

namespace tandem::reference {

/// Runs `func`, whose types are those of one rank, on every rank of the mesh
/// around it: one call, and one outcome, for each, in the order of the ranks.
/// Fails as run() does, on one rank for all, and, with an error at a
/// collective, where all ranks wait for each other.
mlir::FailureOr<std::vector<Outcome>> runRanks(mlir::func::FuncOp func,
                                               llvm::ArrayRef<Call> calls);

/// As evaluate(), with arguments and results for each rank.
mlir::FailureOr<std::vector<llvm::SmallVector<Array>>>
evaluateRanks(mlir::func::FuncOp func,
              llvm::ArrayRef<llvm::SmallVector<Array>> arguments);

} // namespace tandem::reference

#endif
