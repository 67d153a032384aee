//===- PartitionJoint.cpp - the joint becomes programs --------------------===//
//
// @forward and @backward from @joint, @update from the optimizer that the
// module names, @step from all three; @prepare from @evaluate. In @step nothing
// is merged: equal ops are a value that is computed again on purpose.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/optimize/Simplify.h"
#include "passes/partition/BudgetSpec.h"
#include "passes/partition/MemoryBudget.h"
#include "passes/partition/Prepare.h"
#include "passes/partition/Regions.h"
#include "passes/partition/Report.h"
#include "passes/partition/SecondOrder.h"
#include "passes/partition/Update.h"

#include "ir/Ops.h"
#include "ir/Report.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

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
    std::optional<BudgetSpec> budget;
    if (!memoryBudget.empty()) {
      std::string error;
      budget = parseBudgetSpec(memoryBudget, error);
      if (!budget)
        return module.emitError(error);
    }
    auto joint = module.lookupSymbol<func::FuncOp>("joint");
    for (auto func : module.getOps<func::FuncOp>())
      for (Operation &op : func.getOps())
        op.removeAttr(kNoGradAttr);
    auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
    dropAliasOutputs(evaluate);
    for (Operation &op : evaluate.getOps())
      dropTags(&op);
    eraseDeadOps(evaluate);
    bool prepares = module->hasAttr(kPrepareAttr);
    if (joint && prepares)
      return module.emitError()
             << "'" << kPrepareAttr
             << "' is for inference alone, but there is a function 'joint'";
    if (prepares)
      buildPrepare(evaluate);
    if (!joint)
      return success();
    eraseDeadOps(joint);
    if (auto gradJoint = module.lookupSymbol<func::FuncOp>("grad_joint"))
      eraseDeadOps(gradJoint);
    dropOffloadOnHost(module);
    if (failed(checkTags(JointView(joint))))
      return failure();
    dropRegionsThatCost(module, [&](ModuleOp copy) {
      JointView view(copy.lookupSymbol<func::FuncOp>("joint"));
      SavedValues saved;
      if (!view.backwardResults.empty())
        saved = choose()(view);
      return divide(copy, saved, /*isChosen=*/false);
    });
    JointView view(joint);
    SavedValues saved;
    if (!view.backwardResults.empty())
      saved = choose()(view);
    if (budget && failed(keepWithin(*budget, module, view, saved)))
      return failure();
    return divide(module, saved, /*isChosen=*/true);
  }

  SecondOrder::Choose choose() const {
    return kind == "default" ? saveWhatBackwardUses : saveSmallestCut;
  }

  /// Replaces `saved`, what is saved for the fastest step, by what is saved
  /// within the budget.
  LogicalResult keepWithin(const BudgetSpec &budget, ModuleOp module,
                           const JointView &view, SavedValues &saved) {
    auto chain = findBudgetChain(
        module, view, saved, [&](ModuleOp copy, const SavedValues &candidate) {
          return divide(copy, candidate, /*isChosen=*/false);
        });
    if (failed(chain))
      return failure();
    int64_t least = chain->front().peak;
    int64_t limit = budget.limit(least, chain->back().peak);
    if (least > limit)
      return module.emitError()
             << "unsupported --memory-budget=" << memoryBudget.getValue()
             << ": a step needs at least " << least << " bytes ("
             << readableBytes(least) << "), but the budget is " << limit
             << " bytes (" << readableBytes(limit) << ")";
    BudgetPoint *best = &chain->front();
    for (BudgetPoint &point : *chain)
      if (point.peak <= limit)
        best = &point;
    saved = best->saved;
    report(module, *chain, *best);
    return success();
  }

  /// Says in the module what there was to choose from.
  static void report(ModuleOp module, ArrayRef<BudgetPoint> chain,
                     const BudgetPoint &chosen) {
    Builder b(module.getContext());
    SmallVector<Attribute> points;
    for (const BudgetPoint &point : chain)
      points.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("flops", b.getF64FloatAttr(point.flops)),
           b.getNamedAttr("peak", b.getI64IntegerAttr(point.peak)),
           b.getNamedAttr("saved", b.getI64IntegerAttr(point.savedBytes)),
           b.getNamedAttr("seconds", b.getF64FloatAttr(point.seconds))}));
    NamedAttrList entries(
        module->getAttrOfType<DictionaryAttr>(kPartitionReportAttr));
    entries.set("chain", b.getArrayAttr(points));
    entries.set("seconds", b.getF64FloatAttr(chosen.seconds));
    module->setAttr(kPartitionReportAttr,
                    entries.getDictionary(module.getContext()));
  }

  /// Makes the programs, which save `saved`, of the joint.
  LogicalResult divide(ModuleOp module, const SavedValues &saved,
                       bool isChosen) {
    auto joint = module.lookupSymbol<func::FuncOp>("joint");
    JointView view(joint);
    // What the forward keeps, also for a backward that is differentiated.
    SavedValues kept = saved;
    std::optional<SecondOrder> second;
    auto gradJoint = module.lookupSymbol<func::FuncOp>("grad_joint");
    if (gradJoint)
      second.emplace(view, gradJoint, kept, choose());
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
    for (StringRef name :
         {"forward", "backward", "grad_forward", "grad_backward"})
      if (auto program = module.lookupSymbol<func::FuncOp>(name))
        copyOverHost(program);
    if (isChosen)
      reportPartition(module, view, saved, names, repeated);
    if (isChosen)
      remarkNotOffloaded(view, saved);
    if (isChosen && remarks)
      remarkPartition(view, saved, repeated);
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
             << "' has nothing to do: no param has a gradient (in a model in "
                "ONNX, --loss=KIND:OUTPUT,LABELS makes them)";
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
    IRRewriter rewriter(module.getContext());
    DominanceInfo dominance(*update);
    eliminateCommonSubExpressions(rewriter, dominance, *update);
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
};

} // namespace
