//===- ExpandGrads.cpp - gradients inside of a program --------------------===//
//
// A `tandem.grad` becomes the backward of what it differentiates, in its place:
// ops of the program like any other, through which the joint differentiates
// again.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/CustomVjp.h"
#include "passes/autodiff/Decompose.h"
#include "passes/autodiff/Engine.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_EXPANDGRADS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// 'input "x"' or 'value #1', for messages.
static std::string nameOf(func::FuncOp func, GradOp op, unsigned i) {
  auto argument = dyn_cast<BlockArgument>(op.getWrt()[i]);
  if (argument && argument.getOwner() == &func.getBody().front())
    if (RoleAttr role = roleOfArgument(func, argument.getArgNumber()))
      return "'" + role.str() + "'";
  return "value #" + std::to_string(i);
}

static LogicalResult expand(func::FuncOp func, GradOp op) {
  SmallVector<Value> wrt(op.getWrt());
  GradientEngine engine(func, op, wrt);
  if (failed(engine.prune(op.getE(),
                          [](Value) { return std::string("'tandem.grad'"); })))
    return failure();
  bool ok = true;
  for (auto [i, value] : llvm::enumerate(wrt))
    if (!engine.depends(value)) {
      op.emitOpError() << "asks for a gradient with respect to "
                       << nameOf(func, op, i)
                       << ", which what is differentiated does not depend on";
      ok = false;
    }
  if (!ok)
    return failure();
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  auto type = cast<RankedTensorType>(op.getE().getType());
  engine.seed(op.getE(), ConstantOp::splat(builder, op.getLoc(), type, 1.0));
  if (failed(engine.build(/*allowsEffects=*/false)))
    return failure();
  for (auto [i, value] : llvm::enumerate(wrt)) {
    Value gradient = engine.cotangent(value);
    if (!gradient) {
      op.emitOpError() << "asks for a gradient with respect to "
                       << nameOf(func, op, i) << ", but gets none";
      return failure();
    }
    op.getResult(i).replaceAllUsesWith(gradient);
  }
  Operation *made = before ? before->getNextNode() : &op->getBlock()->front();
  for (; made != op; made = made->getNextNode())
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      made->setDiscardableAttr(attribute.getName(), attribute.getValue());
  op.erase();
  (void)resolveSavedValues(func, nullptr);
  return success();
}

namespace {
struct ExpandGrads : tandem::impl::ExpandGradsBase<ExpandGrads> {
  void runOnOperation() final {
    // In order: a gradient of a gradient finds the inner one done.
    SmallVector<GradOp> grads;
    getOperation().walk([&](GradOp op) { grads.push_back(op); });
    for (GradOp op : grads)
      if (failed(expand(getOperation(), op)))
        return signalPassFailure();
    if (!grads.empty() && failed(decomposeComposites(getOperation())))
      return signalPassFailure();
    expanded += grads.size();
  }
};
} // namespace
