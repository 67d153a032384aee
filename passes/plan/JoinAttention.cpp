//===- JoinAttention.cpp - both gradients of attention in one kernel ------===//
//
// The gradients for queries and for keys compute the same scores again. On a
// processor one kernel makes both, if there are heads enough to be items: then
// five products are left of seven, and everything is read once.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/target/Target.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace tandem {
#define GEN_PASS_DEF_JOINATTENTION
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Heads that keep threads busy, and the elements of a head's gradient for
/// queries above which it would not stay in a cache.
static constexpr int64_t kLeastBatches = 16, kMostElements = 1 << 17;

template <typename Op> static Op onlyOp(KernelOp kernel) {
  auto ops = kernel.getBody().front().getOps<Op>();
  return llvm::hasSingleElement(ops) ? *ops.begin() : Op();
}

static bool isWorthwhile(AttentionQueryGradOp op) {
  AttentionSizes sizes = op.getSizes();
  return sizes.batches >= kLeastBatches &&
         sizes.queries * sizes.width <= kMostElements;
}

/// Makes one kernel in front of `queries`; null if its gradients would not be
/// of the same operands.
static KernelOp join(KernelOp queries, KernelOp keys) {
  OpBuilder b(queries);
  SmallVector<Type> types(keys->getResultTypes());
  llvm::append_range(types, queries->getResultTypes());
  auto joined = KernelOp::create(
      b, FusedLoc::get(b.getContext(), {queries.getLoc(), keys.getLoc()}),
      types, queries.getInputs(), "attention_grad", queries.getStream(),
      queries.getNeedsAttr());
  Block *body = b.createBlock(&joined.getBody());
  for (Value input : queries.getInputs())
    body->addArgument(input.getType(), input.getLoc());
  SmallVector<Value> yielded;
  for (KernelOp kernel : {keys, queries}) {
    Block &old = kernel.getBody().front();
    IRMapping mapping;
    mapping.map(old.getArguments(), body->getArguments());
    for (Operation &op : old.without_terminator())
      b.clone(op, mapping);
    for (Value value : old.getTerminator()->getOperands())
      yielded.push_back(mapping.lookup(value));
  }
  YieldOp::create(b, joined.getLoc(), yielded);
  IRRewriter rewriter(b.getContext());
  DominanceInfo dominance(joined);
  eliminateCommonSubExpressions(rewriter, dominance, joined);
  if (onlyOp<AttentionQueryGradOp>(joined)->getOperands() ==
      onlyOp<AttentionKeyGradOp>(joined)->getOperands())
    return joined;
  joined.erase();
  return {};
}

/// Returns how many were joined.
static unsigned joinAttention(func::FuncOp func) {
  if (isForCuda(func))
    return 0;
  unsigned joinedPairs = 0;
  SmallVector<KernelOp> queries, keys;
  for (auto kernel : func.getOps<KernelOp>()) {
    if (auto op = onlyOp<AttentionQueryGradOp>(kernel);
        op && isWorthwhile(op) && !kernel.getChoicesAttr())
      queries.push_back(kernel);
    if (onlyOp<AttentionKeyGradOp>(kernel) && !kernel.getChoicesAttr())
      keys.push_back(kernel);
  }
  for (KernelOp first : queries) {
    auto second = llvm::find_if(keys, [&](KernelOp kernel) {
      return kernel.getInputs() == first.getInputs() &&
             kernel.getNeedsAttr() == first.getNeedsAttr() &&
             kernel.getStream() == first.getStream() &&
             first->isBeforeInBlock(kernel);
    });
    if (second == keys.end())
      continue;
    KernelOp joined = join(first, *second);
    if (!joined)
      continue;
    unsigned count = second->getNumResults();
    (*second)->replaceAllUsesWith(joined->getResults().take_front(count));
    first->replaceAllUsesWith(joined->getResults().drop_front(count));
    first.erase();
    second->erase();
    keys.erase(second);
    ++joinedPairs;
  }
  return joinedPairs;
}

namespace {
struct JoinAttention : tandem::impl::JoinAttentionBase<JoinAttention> {
  void runOnOperation() final { joined += joinAttention(getOperation()); }
};
} // namespace
