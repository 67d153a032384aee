//===- FormKernels.h - which ops run together -----------------------------===//
//
// Groups the ops of a program into units, each of which becomes one kernel: a
// loop nest of pointwise ops, views and reductions, or one anchor (contraction,
// window, indexed) with pointwise ops after it. Units never depend on each
// other in a cycle.
//
// Some ops belong to no unit: they cost next to nothing and are repeated in
// every unit that uses them (constants, repeating and cutting views, cheap
// functions of one tensor), or are free (reshapes) and stay between kernels.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_FORMKERNELS_H
#define TANDEM_PASSES_PLAN_FORMKERNELS_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Puts the kernels in this order, and behind each the free views of its
/// results.
void moveKernels(mlir::func::FuncOp func, llvm::ArrayRef<KernelOp> ordered);

/// Replaces reductions that lower badly by others with the same meaning: over
/// dimensions of size 1 by reshapes; of very many elements into few results by
/// two steps, the first of which has enough results to be run in parallel.
/// Returns how many of those there were.
unsigned splitReductions(mlir::func::FuncOp func);

/// The stream that the program placed an op on; 0 if it did not.
int64_t streamOf(mlir::Operation *op);

/// The value that a chain of free views shows, which has the same buffer.
mlir::Value throughFreeViews(mlir::Value value);

} // namespace tandem

#endif
