//===- OptimizeJoint.cpp - simplification across forward and backward -----===//
//
// The pass tags would keep equal ops of the two passes apart, so they are taken
// off first and worked out again at the end: forward is what an output or an
// update needs, backward is the rest. Of equal ops the first survives, which
// is the forward one. Signatures stay as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/Doors.h"
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

namespace tandem {
#define GEN_PASS_DEF_OPTIMIZEJOINT
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// Once the gradients are built, `detach` is the identity.
struct DropDetach : OpRewritePattern<DetachOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DetachOp op,
                                PatternRewriter &rewriter) const final {
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

/// A view of equal elements is a constant, unless it puts others between them.
struct FoldSplatView : OpInterfaceRewritePattern<ViewOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ViewOpInterface view,
                                PatternRewriter &rewriter) const final {
    auto constant = view->getOperand(0).getDefiningOp<ConstantOp>();
    auto type = dyn_cast<RankedTensorType>(view->getResult(0).getType());
    TypedAttr splat = constant ? constant.getSplat() : TypedAttr();
    if (!splat || !type || (view.getFill() && view.getFill() != splat))
      return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(
        view, DenseElementsAttr::get(type, ArrayRef<Attribute>(splat)));
    return success();
  }
};

struct OptimizeJoint : tandem::impl::OptimizeJointBase<OptimizeJoint> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (failed(expectPhase(module, "joint")) ||
        failed(checkDoor(module, "joint")))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>()) {
      for (Operation &op : func.getOps())
        op.removeAttr(kPassAttr);
      if (failed(simplify(func)))
        return signalPassFailure();
    }
    if (auto joint = module.lookupSymbol<func::FuncOp>("joint"))
      tag(joint);
    if (failed(leavePhase(module, "optimize")))
      signalPassFailure();
  }

  /// Folding can make ops equal and merging can make them foldable; the second
  /// round finds the rest.
  LogicalResult simplify(func::FuncOp func) {
    RewritePatternSet patterns(&getContext());
    for (RegisteredOperationName op :
         getContext().getRegisteredOperationsByDialect("tandem"))
      op.getCanonicalizationPatterns(patterns, &getContext());
    patterns.add<DropDetach, FoldSplatView>(&getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    OpPassManager merge(func::FuncOp::getOperationName());
    merge.addPass(createCSEPass());
    for (int round = 0; round < 2; ++round) {
      eraseDeadOps(func);
      (void)applyPatternsGreedily(func, frozen, config);
      if (failed(runPipeline(merge, func)))
        return failure();
    }
    eraseDeadOps(func);
    return success();
  }

  void tag(func::FuncOp joint) {
    Operation *terminator = joint.getBody().front().getTerminator();
    DenseSet<Value> needed;
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      if (roleOfResult(joint, i).getKind() != RoleKind::Grad)
        needed.insert(value);
    for (Operation &op : llvm::reverse(joint.getBody().front())) {
      if (&op == terminator)
        continue;
      bool forward = llvm::any_of(op.getResults(), [&](Value result) {
        return needed.contains(result);
      });
      if (forward)
        needed.insert(op.operand_begin(), op.operand_end());
      op.setAttr(kPassAttr, StringAttr::get(&getContext(),
                                            forward ? "forward" : "backward"));
    }
  }
};

} // namespace
