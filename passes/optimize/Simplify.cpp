//===- Simplify.cpp - rewrites that keep every bit ------------------------===//
#include "passes/optimize/Simplify.h"

#include "passes/autodiff/Decompose.h"

#include "ir/Ops.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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

/// And the gradient that a hidden write passes on is where it belongs.
struct DropPassGrad : OpRewritePattern<PassGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PassGradOp op,
                                PatternRewriter &rewriter) const final {
    rewriter.replaceOp(op, op.getFresh());
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

} // namespace

/// Constants that folding made or moved have no place in the model; they get
/// that of their first use.
static void placeConstants(func::FuncOp func) {
  for (Operation &op : llvm::reverse(func.getBody().front())) {
    if (!isa<UnknownLoc>(op.getLoc()))
      continue;
    Operation *first = nullptr;
    for (Operation *user : op.getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    if (first)
      op.setLoc(first->getLoc());
  }
}

void tandem::simplifyOps(func::FuncOp func, RewriterBase::Listener *listener) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  for (RegisteredOperationName op :
       context->getRegisteredOperationsByDialect("tandem"))
    op.getCanonicalizationPatterns(patterns, context);
  patterns.add<DropDetach, DropPassGrad, FoldSplatView>(context);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  config.setListener(listener);
  eraseDeadOps(func);
  // Patterns that never settle would be a fault of theirs that changes nothing
  // about the meaning.
  (void)applyPatternsGreedily(func, std::move(patterns), config);
  eraseDeadOps(func);
  placeConstants(func);
}
