//===- OrderKernels.cpp - the order that needs least memory ---------------===//
//
// Formed kernels stand in the order of the program, which is the order in which
// somebody wrote or derived it: a step's updates all stand at its end, where
// every gradient and all that it is made of still waits for them.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/KernelGraph.h"
#include "passes/plan/PlanMemory.h"

namespace tandem {
#define GEN_PASS_DEF_ORDERKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

void tandem::moveKernels(func::FuncOp func, ArrayRef<KernelOp> ordered) {
  Operation *terminator = func.getBody().front().getTerminator();
  for (KernelOp kernel : ordered)
    kernel->moveBefore(terminator);
  for (Operation &op :
       llvm::make_early_inc_range(func.getBody().front().without_terminator()))
    if (isa<ViewOpInterface>(op) &&
        throughFreeViews(op.getResult(0)).getDefiningOp<KernelOp>())
      op.moveAfter(op.getOperand(0).getDefiningOp());
}

/// Returns whether kernels moved.
static bool order(func::FuncOp func, InPlacePairs &pairs) {
  KernelGraph graph(func, pairs);
  std::vector<unsigned> order = orderForMemory(graph.steps);
  if (llvm::is_sorted(order))
    return false;
  SmallVector<KernelOp> ordered;
  for (unsigned k : order)
    ordered.push_back(graph.kernels[k]);
  if (plannedBytes(func, ordered, pairs) >
      plannedBytes(func, graph.kernels, pairs))
    return false;
  moveKernels(func, ordered);
  return true;
}

namespace {
/// What frees memory runs as soon as it can, and what takes some as late. An
/// update runs after all that reads the old value, kernels with effects keep
/// their order.
struct OrderKernels : tandem::impl::OrderKernelsBase<OrderKernels> {
  void runOnOperation() final {
    moved += order(getOperation(), getAnalysis<InPlacePairs>());
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
