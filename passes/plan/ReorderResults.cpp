//===- ReorderResults.cpp - results in the order of their readers ---------===//
//
// Heads are split and joined by permutations around attention:
//
//   %y = attention_forward ...; %p = permute %y by [0, 2, 1, 3]
//
// A product reads %p, and the backward %y. Code for CUDA stores a row of a
// result anywhere, so %p is what the kernel stores (Fuse.cpp), if nobody asks
// for %y in memory. Here those who read elements of %y are given
// `permute %p by [0, 2, 1, 3]`, its inverse, which loops read in place.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/Units.h"
#include "passes/target/Target.h"

#include "ir/ReadsViews.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace tandem {
#define GEN_PASS_DEF_REORDERRESULTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The permutation whose result is to be stored for `value`; null if there is
/// none, or if somebody needs the value as it is.
static PermuteOp readOrder(Value value) {
  PermuteOp first;
  for (Operation *user : value.getUsers()) {
    if (auto permute = dyn_cast<PermuteOp>(user);
        permute && keepsRows(cast<ViewOpInterface>(*permute)))
      if (!first || permute->isBeforeInBlock(first))
        first = permute;
    if (!isa<PermuteOp, PointwiseOpInterface, ReductionOpInterface>(user))
      return {};
  }
  return first;
}

/// Everybody reads what `stored` gives.
static void readThrough(PermuteOp stored, Value value) {
  Operation *source = value.getDefiningOp();
  stored->moveAfter(source);
  for (StringRef tag : {kPassAttr, kStreamAttr}) {
    stored->removeAttr(tag);
    if (Attribute own = source->getAttr(tag))
      stored->setAttr(tag, own);
  }
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *user = use.getOwner();
    if (user == stored)
      continue;
    if (auto permute = dyn_cast<PermuteOp>(user);
        permute && permute.getPermutation() == stored.getPermutation()) {
      permute->replaceAllUsesWith(stored);
      permute->erase();
      continue;
    }
    OpBuilder b(user);
    auto back =
        PermuteOp::create(b, user->getLoc(), stored.getY(),
                          invertPermutationVector(stored.getPermutation()));
    for (StringRef tag : {kPassAttr, kStreamAttr})
      if (Attribute own = user->getAttr(tag))
        back->setAttr(tag, own);
    use.set(back.getY());
  }
}

namespace {
struct ReorderResults : tandem::impl::ReorderResultsBase<ReorderResults> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (!isForCuda(func))
      return;
    for (Operation &op : func.getBody().front())
      if (readsViews(&op))
        for (Value result : op.getResults())
          if (PermuteOp stored = readOrder(result)) {
            readThrough(stored, result);
            ++reordered;
          }
  }
};
} // namespace
