//===- LowerHostCopies.cpp - copies to and from the host's memory ---------===//
#include "passes/Passes.h"
#include "passes/plan/HostCopies.h"

#include "ir/Keys.h"

#include "mlir/IR/IRMapping.h"

namespace tandem {
#define GEN_PASS_DEF_LOWERHOSTCOPIES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
struct LowerHostCopies : tandem::impl::LowerHostCopiesBase<LowerHostCopies> {
  void runOnOperation() final;
};
} // namespace

/// Puts the copy in the place of the kernel around it.
static void lower(KernelOp kernel, Operation *copy) {
  OpBuilder b(kernel);
  IRMapping map;
  map.map(copy->getOperand(0), kernel.getInputs()[0]);
  Operation *made = b.clone(*copy, map);
  made->setLoc(kernel.getLoc());
  made->setAttr(key::kBuffer, kernel.getBuffersAttr()[0]);
  if (ArrayAttr needs = kernel.getNeedsAttr())
    made->setAttr(key::kNeeds, needs);
  kernel.replaceAllUsesWith(made->getResults());
  kernel.erase();
}

void LowerHostCopies::runOnOperation() {
  for (auto kernel :
       llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
    Operation *copy = hostCopyOf(kernel);
    if (!copy)
      continue;
    if (!kernel.getBuffersAttr()) {
      kernel.emitOpError() << "expected 'buffers': plan comes before lower";
      return signalPassFailure();
    }
    lower(kernel, copy);
    ++lowered;
  }
}
