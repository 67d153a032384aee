//===- MarkPasses.cpp - what is forward, and what backward ----------------===//
//
// Once ops are simplified and merged: of equal ops the first one is left, which
// is the forward's, and other ones may need it no more.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/Phase.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_MARKPASSES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct MarkPasses : tandem::impl::MarkPassesBase<MarkPasses> {
  void runOnOperation() final {
    func::FuncOp joint = getOperation();
    if (joint.getName() != "joint" && joint.getName() != "grad_joint")
      return;
    Operation *terminator = joint.getBody().front().getTerminator();
    DenseSet<Value> needed;
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      if (!isBackward(roleOfResult(joint, i)))
        needed.insert(value);
    for (Operation &op : llvm::reverse(joint.getBody().front())) {
      if (&op == terminator)
        continue;
      bool isForward = llvm::any_of(op.getResults(), [&](Value result) {
        return needed.contains(result);
      });
      if (isForward)
        needed.insert(op.operand_begin(), op.operand_end());
      op.setAttr(
          kPassAttr,
          StringAttr::get(&getContext(), isForward ? "forward" : "backward"));
      forward += isForward;
    }
  }
};

} // namespace
