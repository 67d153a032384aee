//===- ApplyAutocast.cpp - mixed precision, written out -------------------===//
#include "passes/precision/ApplyAutocast.h"
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/precision/Policy.h"

#include "ir/Autocast.h"
#include "ir/Ops.h"
#include "ir/Pipeline.h"

namespace tandem {
#define GEN_PASS_DEF_APPLYAUTOCAST
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The type that the attribute `name` of `op` says; null if it has none.
static Type typeOf(Operation *op, StringRef name) {
  auto type = op->getAttrOfType<TypeAttr>(name);
  return type ? type.getValue() : Type();
}

/// `low` is the type of ops that say none themselves; null: they stay. Sets
/// `isLow` if one is computed in a low type.
static LogicalResult apply(Block &block, Type low, TypeObserver observer,
                           bool &isLow) {
  Retyper retyper;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    Type own = typeOf(&op, kAutocastAttr),
         forced = typeOf(&op, kComputeTypeAttr), type = own ? own : low;
    op.removeAttr(kAutocastAttr);
    op.removeAttr(kComputeTypeAttr);
    // What a custom_vjp computes in is as it says: its backward relies on it.
    for (Region &region : op.getRegions())
      if (failed(apply(region.front(), isa<CustomVjpOp>(op) ? Type() : type,
                       observer, isLow)))
        return failure();
    if (!hasChoice(&op))
      continue;
    TypeChoice choice{forced, "asked for"};
    if (!forced && type && isLowFloat(type))
      choice = chooseType(retyper, &op, type);
    else if (!forced)
      choice.why = own ? "mixed precision is off" : "as it was written";
    Operation *made = &op;
    if (choice.type) {
      auto computed = retyper.compute(&op, choice.type);
      if (failed(computed))
        return failure();
      made = *computed;
      isLow |= isLowFloat(choice.type);
    }
    if (observer)
      observer(made, choice.why);
  }
  return success();
}

LogicalResult tandem::applyAutocast(ModuleOp module, TypeObserver observer) {
  Type low = typeOf(module, kAmpAttr);
  module->removeAttr(kAmpAttr);
  bool isLow = false;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (failed(apply(func.getBody().front(), low, observer, isLow)))
      return failure();
    // Casts back to a type that nobody reads.
    eraseDeadOps(func);
  }
  // A stage may have no product, where the model has some.
  if (low && !isLow && !Pipeline::of(module))
    module.emitWarning() << "mixed precision changes nothing: the model has no "
                            "product, convolution or attention of f32";
  return success();
}

namespace {

struct ApplyAutocast : tandem::impl::ApplyAutocastBase<ApplyAutocast> {
  void runOnOperation() final {
    if (failed(applyAutocast(getOperation())))
      signalPassFailure();
  }
};

} // namespace
