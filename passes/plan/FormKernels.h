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

#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Replaces the body of `func` by kernels, free views of their results, and
/// constants that are not splats. Every function result is afterwards the
/// result of a kernel or a free view of one, and no two are of one kernel
/// result, but for saved values that lie in an output's storage: they are the
/// output. Gradients and updates say under which condition they are defined.
mlir::LogicalResult formKernels(mlir::func::FuncOp func);

/// Puts the kernels in an order in which they need no more memory than in the
/// program's, and less where that can be: what frees memory runs as soon as it
/// can, and what takes some as late. An update runs after all that reads the
/// old value, kernels with effects keep their order.
void orderKernels(mlir::func::FuncOp func, InPlacePairs &pairs);

/// Puts the kernels in that order, and behind each the free views of its
/// results.
void moveKernels(mlir::func::FuncOp func, llvm::ArrayRef<KernelOp> ordered);

/// For processors: makes one kernel of the gradients of attention for queries
/// and for keys, where that is worthwhile.
void joinAttention(mlir::func::FuncOp func);

/// For CUDA: makes one kernel with several parts of small pointwise kernels
/// whose results are only returned. They run as late as the memory that they
/// hold on to allows.
void joinKernels(mlir::func::FuncOp func, InPlacePairs &pairs);

/// Replaces reductions that lower badly by others with the same meaning: over
/// dimensions of size 1 by reshapes; of very many elements into few results by
/// two steps, the first of which has enough results to be run in parallel.
void splitReductions(mlir::func::FuncOp func);

/// For processors: replaces gradients of convolutions' filters that are too few
/// blocks of results for many threads by sums of those of parts of the images.
void splitFilterGrads(mlir::func::FuncOp func);

/// The stream that the program placed an op on; 0 if it did not.
int64_t streamOf(mlir::Operation *op);

/// The value that a chain of free views shows, which has the same buffer.
mlir::Value throughFreeViews(mlir::Value value);

} // namespace tandem

#endif
