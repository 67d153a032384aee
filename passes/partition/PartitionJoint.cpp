//===- PartitionJoint.cpp - the joint becomes programs --------------------===//
//
// @forward and @backward from @joint, @update from the optimizer that the
// module names, @step from all three. In @step nothing is merged: equal ops
// are a value that is computed again on purpose.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/optimize/Simplify.h"
#include "passes/partition/SecondOrder.h"
#include "passes/partition/Update.h"

#include "ir/Ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace tandem {
#define GEN_PASS_DEF_PARTITIONJOINT
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct PartitionJoint : tandem::impl::PartitionJointBase<PartitionJoint> {
  using PartitionJointBase::PartitionJointBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(expectPhase(module, "optimize")) ||
        failed(checkDoor(module, "optimize")) || failed(partition(module)) ||
        failed(leavePhase(module, "partition")))
      signalPassFailure();
  }

  LogicalResult partition(ModuleOp module) {
    if (kind != "default" && kind != "min-cut")
      return module.emitError()
             << "expected partition 'default' or 'min-cut' but got '"
             << kind.getValue() << "'";
    auto joint = module.lookupSymbol<func::FuncOp>("joint");
    for (auto func : module.getOps<func::FuncOp>())
      for (Operation &op : func.getOps())
        op.removeAttr(kNoGradAttr);
    auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
    dropAliasOutputs(evaluate);
    for (Operation &op : evaluate.getOps())
      dropTags(&op);
    eraseDeadOps(evaluate);
    if (!joint)
      return success();
    eraseDeadOps(joint);
    SecondOrder::Choose choose =
        kind == "default" ? saveWhatBackwardUses : saveSmallestCut;
    JointView view(joint);
    if (failed(checkTags(view)))
      return failure();
    SavedValues saved;
    if (!view.backwardResults.empty())
      saved = choose(view);
    // What the forward keeps, also for a backward that is differentiated.
    SavedValues kept = saved;
    std::optional<SecondOrder> second;
    auto gradJoint = module.lookupSymbol<func::FuncOp>("grad_joint");
    if (gradJoint) {
      eraseDeadOps(gradJoint);
      second.emplace(view, gradJoint, kept, choose);
    }
    SavedNames names(joint, kept);
    func::FuncOp forward = buildForward(view, kept, names), backward;
    SmallVector<Operation *> repeated;
    if (!view.backwardResults.empty()) {
      backward = buildBackward(view, saved, names, repeated);
      copyReaders(forward, backward);
    }
    if (second) {
      second->build(names);
      copyReaders(forward, module.lookupSymbol<func::FuncOp>("grad_forward"));
      gradJoint.erase();
    }
    if (remarks)
      emitRemarks(saved, repeated);
    if (failed(addUpdate(module, joint, forward, backward)))
      return failure();
    joint.erase();
    return success();
  }

  LogicalResult addUpdate(ModuleOp module, func::FuncOp joint,
                          func::FuncOp forward, func::FuncOp backward) {
    auto optimizer = module->getAttrOfType<StringAttr>(kOptimizerAttr);
    if (!optimizer)
      return success();
    if (!backward || !hasParamGradient(forward, backward))
      return forward.emitError()
             << "optimizer '" << optimizer.getValue()
             << "' has nothing to do: no param has a gradient";
    auto loss = module->getAttrOfType<StringAttr>(kLossAttr);
    std::optional<unsigned> output;
    if (loss)
      output = findResult(joint, RoleKind::Output, loss.getValue());
    if (!output)
      return forward.emitError() << "optimizer '" << optimizer.getValue()
                                 << "' needs one output as the loss";
    auto type = cast<RankedTensorType>(joint.getResultTypes()[*output]);
    if (type.getNumElements() != 1)
      return forward.emitError() << "optimizer '" << optimizer.getValue()
                                 << "' needs a loss of one element, but '"
                                 << loss.getValue() << "' has type " << type;
    auto update = buildUpdate(module, backward, optimizer.getValue());
    if (failed(update))
      return failure();
    // What the params share (rates, bias corrections) is computed once.
    OpPassManager merge(func::FuncOp::getOperationName());
    merge.addPass(createCSEPass());
    if (failed(runPipeline(merge, *update)))
      return failure();
    simplifyOps(*update);
    func::FuncOp step = buildStep(forward, backward, *update, loss.getValue());
    // The cotangent of 1 leaves much to fold.
    simplifyOps(step);
    return success();
  }

  static bool hasParamGradient(func::FuncOp forward, func::FuncOp backward) {
    for (unsigned i = 0, n = backward.getNumResults(); i < n; ++i)
      if (RoleAttr role = roleOfResult(backward, i);
          role.getKind() == RoleKind::Grad &&
          findArgument(forward, RoleKind::Param, role.getName()))
        return true;
    return false;
  }

  static void emitRemarks(const SavedValues &saved,
                          ArrayRef<Operation *> repeated) {
    for (const auto &[value, reason] : saved) {
      auto type = cast<RankedTensorType>(value.getType());
      auto remark = emitRemark(value.getLoc()) << "saved ";
      if (Operation *op = value.getDefiningOp())
        remark << "the result of '" << op->getName() << "'";
      else
        remark << "an argument";
      remark << " (" << type << ", " << byteSize(type) << " bytes): " << reason;
    }
    for (Operation *op : repeated)
      emitRemark(op->getLoc())
          << "'" << op->getName() << "' is computed again in the backward";
  }
};

} // namespace
