//===- CarryTags.cpp - tags of ops that are folded and merged -------------===//
#include "passes/optimize/CarryTags.h"

#include "passes/common/Phase.h"

#include "ir/Tags.h"
#include "ir/Where.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace tandem;

TagCarrier::TagCarrier(func::FuncOp func) : func(func) {
  for (Operation &op : func.getOps()) {
    Tags &own = tags[&op];
    own.isForward = passOf(&op) == "forward";
    own.region = op.getAttrOfType<StringAttr>(kCheckpointAttr);
    if (op.hasAttr(kSaveAttr))
      own.saved = Said{whereIs(&op), op.getLoc()};
    if (op.hasAttr(kOffloadAttr))
      own.offloaded = Said{whereIs(&op), op.getLoc()};
    if (op.hasAttr(kRecomputeAttr))
      own.recomputed = Said{whereIs(&op), op.getLoc()};
    dropTags(&op);
  }
}

/// What gradient rules make is of the region of the forward op that it equals.
void TagCarrier::add(Tags &tags, const Tags &more) {
  if (more.isForward) {
    if (!tags.isForward)
      tags.region = more.region;
    else if (tags.region != more.region)
      tags.region = {};
    tags.isForward = true;
  }
  if (!tags.saved)
    tags.saved = more.saved;
  if (!tags.offloaded)
    tags.offloaded = more.offloaded;
  if (!tags.recomputed)
    tags.recomputed = more.recomputed;
}

int64_t TagCarrier::merge() {
  DominanceInfo dominance(func);
  IRRewriter rewriter(func.getContext(), this);
  isMerging = true;
  merged = 0;
  eliminateCommonSubExpressions(rewriter, dominance, func);
  isMerging = false;
  return merged;
}

void TagCarrier::notifyOperationInserted(Operation *op,
                                         OpBuilder::InsertPoint) {
  // Memory of an op that is no more may be used again.
  tags.erase(op);
  fresh.push_back(op);
}

void TagCarrier::notifyOperationErased(Operation *op) {
  tags.erase(op);
  llvm::erase(fresh, op);
}

void TagCarrier::notifyOperationReplaced(Operation *op, ValueRange values) {
  merged += isMerging;
  auto found = tags.find(op);
  if (found == tags.end())
    return;
  Tags own = found->second;
  for (Value value : values) {
    Operation *made = value.getDefiningOp();
    if (!made || llvm::is_contained(fresh, made))
      continue;
    Tags &its = tags[made];
    if (isMerging) {
      add(its, own);
      continue;
    }
    if (own.saved && !its.saved)
      its.saved = own.saved;
    if (own.offloaded && !its.offloaded)
      its.offloaded = own.offloaded;
  }
}

void TagCarrier::notifyPatternBegin(const Pattern &, Operation *op) {
  fresh.clear();
  root = tags.lookup(op);
}

void TagCarrier::notifyPatternEnd(const Pattern &, LogicalResult status) {
  if (succeeded(status))
    for (Operation *made : fresh)
      add(tags[made], root);
  fresh.clear();
}

LogicalResult TagCarrier::restore() {
  bool ok = true;
  Builder builder(func.getContext());
  for (Operation &op : func.getOps()) {
    auto found = tags.find(&op);
    if (found == tags.end())
      continue;
    const Tags &own = found->second;
    const std::optional<Said> &kept = own.saved ? own.saved : own.offloaded;
    if (kept && own.recomputed) {
      auto error = mlir::emitError(kept->loc)
                   << kept->where << " is tagged '"
                   << (own.saved ? kSaveAttr : kOffloadAttr)
                   << "', but is the same as " << own.recomputed->where
                   << ", which is tagged '" << kRecomputeAttr << "'";
      error.attachNote(own.recomputed->loc) << "the other one is here";
      ok = false;
      continue;
    }
    if (own.saved)
      op.setAttr(kSaveAttr, builder.getUnitAttr());
    if (own.offloaded)
      op.setAttr(kOffloadAttr, builder.getUnitAttr());
    if (own.recomputed)
      op.setAttr(kRecomputeAttr, builder.getUnitAttr());
    if (own.region)
      op.setAttr(kCheckpointAttr, own.region);
  }
  return success(ok);
}
