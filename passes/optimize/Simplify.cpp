//===- Simplify.cpp - rewrites that keep every bit ------------------------===//
//
// What ops are tagged with would keep equal ones apart. CarryTags carries what
// the program says of them; which pass they are of is taken off, and worked out
// again by tandem-mark-passes. Of equal ops the first survives, which is the
// forward one. Signatures stay as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/optimize/Simplify.h"

#include "passes/Passes.h"
#include "passes/autodiff/Definedness.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/optimize/CarryTags.h"

#include "ir/Ops.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tandem {
#define GEN_PASS_DEF_SIMPLIFY
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

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// When each result is defined.
static SmallVector<ArrayAttr> conditionsOf(func::FuncOp func) {
  Definedness definedness(func);
  SmallVector<ArrayAttr> conditions;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    conditions.push_back(definedness.of(value));
  return conditions;
}

/// A gradient that folds to a constant is undefined where it was before.
static void keepConditions(func::FuncOp func, ArrayRef<ArrayAttr> before) {
  Operation *terminator = func.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  for (auto [i, after] : llvm::enumerate(conditionsOf(func)))
    if (after != before[i] &&
        isDifferentiableType(terminator->getOperand(i).getType()))
      terminator->setOperand(
          i, OrZeroOp::create(builder, terminator->getOperand(i).getLoc(),
                              terminator->getOperand(i), before[i]));
}

namespace {

struct Simplify : tandem::impl::SimplifyBase<Simplify> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    auto size = [&] { return llvm::range_size(func.getOps()); };
    size_t before = size();
    TagCarrier tags(func);
    for (Operation &op : func.getOps())
      op.removeAttr(kPassAttr);
    SmallVector<ArrayAttr> conditions = conditionsOf(func);
    // Folding can make ops equal and merging can make them foldable; the second
    // round finds the rest.
    for (int round = 0; round < 2; ++round) {
      simplifyOps(func, &tags);
      merged += tags.merge();
    }
    if (failed(tags.restore()))
      return signalPassFailure();
    keepConditions(func, conditions);
    eraseDeadOps(func);
    size_t after = size();
    erased += before > after ? before - after : 0;
  }
};

} // namespace
