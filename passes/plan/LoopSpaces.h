//===- LoopSpaces.h - spaces of indices that loops may have ---------------===//
//
// What findLoopNest (LoopNest.h) tries.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_LOOPSPACES_H
#define TANDEM_PASSES_PLAN_LOOPSPACES_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace tandem {

/// A space that may serve a group: dimension d has sizes[d] indices.
struct LoopSpace {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<bool> reduced;
};

/// The spaces worth trying for the ops for which `isInside` holds: those of the
/// reductions, or shapes with as many elements as the results.
llvm::SmallVector<LoopSpace>
loopSpaces(llvm::ArrayRef<mlir::Value> results,
           llvm::function_ref<bool(mlir::Operation *)> isInside);

/// The space with kept dimensions cut where `exprs`, which are of its
/// dimensions, divide their indices, so that what is put together from pieces
/// is read with a step of one in each. None where nothing is cut, or only to
/// pieces shorter than a vector.
std::optional<LoopSpace> cutSpace(const LoopSpace &space,
                                  llvm::ArrayRef<mlir::AffineExpr> exprs);

/// True if a quotient or a remainder is in the expression.
bool hasDivision(mlir::AffineExpr expr);

} // namespace tandem

#endif
