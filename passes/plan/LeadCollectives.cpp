//===- LeadCollectives.cpp - pieces that lie in one stretch of memory -----===//
//
// A communicator moves pieces that are contiguous: those along dimension 0. Of
// any other dimension, the operand is permuted before and the result after,
// which fuse with what is around as other views do.
//
//===----------------------------------------------------------------------===//
#include "ir/Collective.h"
#include "ir/Expr.h"
#include "passes/Passes.h"

namespace tandem {
#define GEN_PASS_DEF_LEADCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Gives what replaces `op` what is said of it.
static Operation *tagged(Operation *made, Operation *op) {
  for (StringRef tag : {kPassAttr, kStreamAttr})
    if (Attribute value = op->getAttr(tag))
      made->setAttr(tag, value);
  return made;
}

namespace {
/// Views in front of and behind a collective, which say what it says.
class Views {
public:
  explicit Views(Operation *op) : op(op), b(op) {}

  Expr of(Value value) { return {b, op->getLoc(), value}; }
  Expr reshape(const Expr &x, ArrayRef<int64_t> shape) {
    return tag(x.reshape(shape));
  }
  Expr permute(const Expr &x, ArrayRef<int64_t> permutation) {
    return tag(x.permute(permutation));
  }
  /// `x` with dimension `dim` first, and back.
  Expr lead(const Expr &x, int64_t dim) {
    SmallVector<int64_t> order{dim};
    for (int64_t d = 0; d < x.rank(); ++d)
      if (d != dim)
        order.push_back(d);
    return permute(x, order);
  }
  Expr unlead(const Expr &x, int64_t dim) {
    SmallVector<int64_t> order;
    for (int64_t d = 1; d < x.rank(); ++d)
      order.push_back(d);
    order.insert(order.begin() + dim, 0);
    return permute(x, order);
  }

  Operation *op;
  OpBuilder b;

private:
  Expr tag(const Expr &x) {
    if (Operation *made = Value(x).getDefiningOp())
      tagged(made, op);
    return x;
  }
};
} // namespace

/// One that has `dim`.
template <typename Op> static bool lead(Op op) {
  auto dim = static_cast<int64_t>(op.getDim());
  if (dim == 0)
    return false;
  Views views(op);
  Expr x = views.lead(views.of(op.getX()), dim);
  RankedTensorType type = op.getY().getType();
  SmallVector<int64_t> shape(type.getShape());
  std::rotate(shape.begin(), shape.begin() + dim, shape.begin() + dim + 1);
  auto made = cast<Op>(views.b.clone(*op));
  made.getXMutable().assign(x);
  made.setDim(0);
  made.getY().setType(type.clone(shape));
  op.getY().replaceAllUsesWith(views.unlead(views.of(made.getY()), dim));
  op.erase();
  return true;
}

/// The pieces of the operand are moved in front, exchanged, and moved to where
/// the result has them.
static bool lead(AllToAllOp op) {
  auto split = static_cast<int64_t>(op.getSplitDim()),
       concat = static_cast<int64_t>(op.getConcatDim());
  if (split == 0 && concat == 0)
    return false;
  Views views(op);
  int64_t ranks = groupSize(op, op.getAxes());
  Expr x = views.lead(views.of(op.getX()), split);
  auto made = cast<AllToAllOp>(views.b.clone(*op));
  made.getXMutable().assign(x);
  made.setSplitDim(0);
  made.setConcatDim(0);
  made.getY().setType(x.type());
  // [ranks, pieces of `split`, the others] to [..., ranks, `concat`, ...].
  SmallVector<int64_t> shape(x.shape());
  shape[0] /= ranks;
  shape.insert(shape.begin(), ranks);
  Expr y = views.reshape(views.of(made.getY()), shape);
  SmallVector<int64_t> order;
  for (int64_t d = 2; d < y.rank(); ++d)
    order.push_back(d);
  order.insert(order.begin() + split, 1);
  order.insert(order.begin() + concat, 0);
  y = views.reshape(views.permute(y, order), op.getY().getType().getShape());
  op.getY().replaceAllUsesWith(y);
  op.erase();
  return true;
}

namespace {
struct LeadCollectives : tandem::impl::LeadCollectivesBase<LeadCollectives> {
  void runOnOperation() final {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getOps())) {
      bool isMoved = false;
      if (auto gather = dyn_cast<AllGatherOp>(op))
        isMoved = lead(gather);
      else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
        isMoved = lead(scatter);
      else if (auto slice = dyn_cast<RankSliceOp>(op))
        isMoved = lead(slice);
      else if (auto exchange = dyn_cast<AllToAllOp>(op))
        isMoved = lead(exchange);
      moved += isMoved;
    }
  }
};
} // namespace
