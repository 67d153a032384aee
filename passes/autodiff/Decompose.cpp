//===- Decompose.cpp - composites become simpler ops ----------------------===//
#include "passes/autodiff/Decompose.h"
#include "passes/Passes.h"
#include "passes/target/Target.h"

#include "ir/EmptyTensors.h"
#include "ir/Ops.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tandem {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#define GEN_PASS_DEF_FUSECOMPOSITES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Puts `values` in the composite's place; the ops that make them, all behind
/// `before`, get its tags.
static void replace(CompositeOpInterface composite, Operation *before,
                    ValueRange values) {
  Operation *made =
      before ? before->getNextNode() : &composite->getBlock()->front();
  for (; made != composite; made = made->getNextNode())
    for (NamedAttribute attribute : composite->getDiscardableAttrs())
      made->setDiscardableAttr(attribute.getName(), attribute.getValue());
  composite->replaceAllUsesWith(values);
}

static LogicalResult decomposeComposites(Block &block, unsigned &count) {
  for (Operation *op = &block.front(); op;) {
    for (Region &region : op->getRegions())
      if (failed(decomposeComposites(region.front(), count)))
        return failure();
    auto composite = dyn_cast<CompositeOpInterface>(op);
    // What has no elements is made of nothing, and stays for foldEmptyTensors.
    if (!composite || areEmptyTensors(op->getResultTypes())) {
      op = op->getNextNode();
      continue;
    }
    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    SmallVector<Value> values = composite.decompose(builder);
    if (TypeRange(ValueRange(values)) != TypeRange(op->getResultTypes())) {
      auto error = op->emitOpError()
                   << "expected to decompose into values of "
                   << "types (" << op->getResultTypes() << ") but got (";
      return error << TypeRange(ValueRange(values)) << ")";
    }
    // On with the first of the new ops: it may be a composite in its turn.
    Operation *next = before ? before->getNextNode() : &block.front();
    replace(composite, before, values);
    op = next == op ? op->getNextNode() : next;
    composite->erase();
    ++count;
  }
  return success();
}

LogicalResult tandem::decomposeComposites(func::FuncOp func) {
  unsigned count = 0;
  return ::decomposeComposites(func.getBody().front(), count);
}

/// Returns how many composites were replaced.
static unsigned fuseComposites(func::FuncOp func) {
  // Without a target it is not for kernels.
  if (!hasTarget(func))
    return 0;
  // A gradient inside of the program is differentiated again with it.
  if (func.walk([](GradOp) { return WalkResult::interrupt(); })
          .wasInterrupted())
    return 0;
  unsigned count = 0;
  func.walk([&](CompositeOpInterface composite) {
    Operation *before = composite->getPrevNode();
    OpBuilder builder(composite);
    SmallVector<Value> values = composite.fuse(builder);
    if (values.empty())
      return;
    replace(composite, before, values);
    composite->erase();
    ++count;
  });
  return count;
}

namespace {

struct DecomposeComposites
    : tandem::impl::DecomposeCompositesBase<DecomposeComposites> {
  void runOnOperation() final {
    unsigned count = 0;
    if (failed(::decomposeComposites(getOperation().getBody().front(), count)))
      signalPassFailure();
    decomposed += count;
  }
};

struct FuseComposites : tandem::impl::FuseCompositesBase<FuseComposites> {
  using FuseCompositesBase::FuseCompositesBase;
  void runOnOperation() final {
    if (order == 1 || getOperation().getName() == "evaluate")
      fused += fuseComposites(getOperation());
  }
};

} // namespace
