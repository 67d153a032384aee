//===- SetBackwardType.cpp - what a backward is computed in ---------------===//
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/common/Phase.h"
#include "passes/precision/Policy.h"

#include "ir/Autocast.h"
#include "ir/Ops.h"

namespace tandem {
#define GEN_PASS_DEF_SETBACKWARDTYPE
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// In f32 every op of the backward that has low floats; in a low type those
/// that mixed precision would compute in it.
static LogicalResult setType(Block &block, Type type) {
  Retyper retyper;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (passOf(&op) != "backward")
      continue;
    // Between two types of which the backward has one alone.
    if (auto cast = dyn_cast<CastOp>(op); cast && type.isF32())
      retyper.skip(cast);
    if (!hasChoice(&op))
      continue;
    Type chosen = isLowFloat(type) ? chooseType(retyper, &op, type).type : type;
    if (chosen && failed(retyper.compute(&op, chosen)))
      return failure();
  }
  return success();
}

namespace {

struct SetBackwardType : tandem::impl::SetBackwardTypeBase<SetBackwardType> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto type = module->getAttrOfType<TypeAttr>(kBackwardTypeAttr);
    auto joint = module.lookupSymbol<func::FuncOp>("joint");
    if (!type || !joint)
      return;
    module->removeAttr(kBackwardTypeAttr);
    if (failed(setType(joint.getBody().front(), type.getValue())))
      return signalPassFailure();
    eraseDeadOps(joint);
  }
};

} // namespace
