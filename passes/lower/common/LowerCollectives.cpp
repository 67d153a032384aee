//===- LowerCollectives.cpp - collectives are no kernels with code --------===//
#include "passes/Passes.h"
#include "passes/plan/Collectives.h"

#include "ir/Keys.h"

#include "mlir/IR/IRMapping.h"

namespace tandem {
#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
struct LowerCollectives : tandem::impl::LowerCollectivesBase<LowerCollectives> {
  void runOnOperation() final;
};
} // namespace

/// What a communicator and the host's executor rely on; reports all of it.
static LogicalResult check(KernelOp kernel, CollectiveOpInterface op) {
  bool isRight = true;
  auto error = [&] {
    isRight = false;
    return op->emitOpError();
  };
  if (kernel->getNumResults() && !kernel.getBuffersAttr())
    kernel.emitOpError() << "expected 'buffers': plan comes before lower",
        isRight = false;
  for (StringRef dim : {"dim", "split_dim", "concat_dim"})
    if (auto number = op->getAttrOfType<IntegerAttr>(dim);
        number && number.getInt() != 0)
      error() << "expected '" << dim
              << "' to be 0 in a planned program, but got " << number.getInt();
  return success(isRight);
}

/// Puts the op in the place of the kernel around it.
static void lower(KernelOp kernel, Operation *op) {
  OpBuilder b(kernel);
  IRMapping map;
  if (op->getNumOperands())
    map.map(op->getOperand(0), kernel.getInputs()[0]);
  Operation *made = b.clone(*op, map);
  if (op->getNumResults())
    made->setAttr(key::kBuffer, kernel.getBuffersAttr()[0]);
  if (ArrayAttr needs = kernel.getNeedsAttr())
    made->setAttr(key::kNeeds, needs);
  kernel.replaceAllUsesWith(made->getResults());
  kernel.erase();
}

void LowerCollectives::runOnOperation() {
  bool isRight = true;
  for (auto kernel :
       llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
    CollectiveOpInterface op = collectiveOf(kernel);
    if (!op)
      continue;
    if (failed(check(kernel, op))) {
      isRight = false;
      continue;
    }
    lower(kernel, op);
    ++lowered;
  }
  if (!isRight)
    signalPassFailure();
}
