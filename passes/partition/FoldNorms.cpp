//===- FoldNorms.cpp - scales behind convolutions, in their filters -------===//
//
// Of a convolution y of x with w, and numbers m, k, b of its planes that do not
// change between calls,
//   (y(x, w) - m) * k + b  =  y(x, w * k) + (b - m * k)
// so that a batch norm that infers is an addition. Any chain of such sums,
// differences and products is one scale and one shift.
//
// Rounded numbers differ: a shift that is large beside the result costs digits,
// as it does wherever a norm is folded. What trains is left alone.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/partition/Frozen.h"

#include "ir/Expr.h"
#include "ir/Ops.h"
#include "ir/PartitionMarks.h"
#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_FOLDNORMS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// The ops that follow a convolution with a number for each plane.
class Chain {
public:
  Chain(Conv2dOp conv, const FrozenValues &frozen);

  /// True if one of them is a product: a filter is not copied for a sum.
  bool hasScale() const {
    return llvm::any_of(links, [](auto &link) { return isa<MulOp>(link.op); });
  }
  /// Replaces the chain by a convolution and its shift, whose filter is called
  /// `name`.
  void fold(const Twine &name);

private:
  struct Link {
    Operation *op;
    Value number; ///< of each plane
  };
  Conv2dOp conv;
  SmallVector<Link> links;
};

} // namespace

/// The number of each plane that `value` repeats over images and pixels; null
/// if it is none, or may be another one in the next call.
static Value ofPlanes(Value value, const FrozenValues &frozen) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || broadcast.getDims() != ArrayRef<int64_t>{1} ||
      !frozen.contains(broadcast.getX()))
    return {};
  return broadcast.getX();
}

Chain::Chain(Conv2dOp conv, const FrozenValues &frozen) : conv(conv) {
  for (Value last = conv->getResult(0); last.hasOneUse();
       last = links.back().op->getResult(0)) {
    OpOperand &use = *last.use_begin();
    Operation *op = use.getOwner();
    unsigned place = use.getOperandNumber();
    if (!isa<AddOp, SubOp, MulOp>(op) || (isa<SubOp>(op) && place != 0))
      return;
    Value number = ofPlanes(op->getOperand(1 - place), frozen);
    if (!number)
      return;
    links.push_back({op, number});
  }
}

/// Says that the op of `value` is to be computed once, where there is one.
static void prepare(Value value, const Twine &name) {
  if (Operation *op = value.getDefiningOp())
    op->setAttr(kPreparedAttr, StringAttr::get(op->getContext(), name));
}

void Chain::fold(const Twine &name) {
  Operation *end = links.back().op;
  OpBuilder b(end->getContext());
  b.setInsertionPointAfter(end);
  Expr scale, shift;
  for (auto [op, value] : links) {
    Expr number(b, op->getLoc(), value);
    if (isa<MulOp>(op)) {
      scale = scale ? scale * number : number;
      if (shift)
        shift = shift * number;
    } else if (isa<AddOp>(op)) {
      shift = shift ? shift + number : number;
    } else {
      shift = shift ? shift - number : -number;
    }
  }
  Expr filter(b, conv.getLoc(), conv.getW());
  filter = filter * scale.broadcastTo(filter.shape(), {0});
  prepare(filter, name + ".folded");
  auto made = cast<Conv2dOp>(b.clone(*conv));
  made->setOperand(1, filter);
  Expr y(b, conv.getLoc(), made->getResult(0));
  if (shift) {
    prepare(shift, name + ".shift");
    y = y + shift.broadcastTo(y.shape(), {1});
  }
  end->getResult(0).replaceAllUsesWith(y);
  for (auto &link : llvm::reverse(links))
    link.op->erase();
  conv->erase();
}

/// What the filter is called, or what is made of it.
static std::string nameOf(func::FuncOp evaluate, Value filter) {
  while (Operation *op = filter.getDefiningOp()) {
    if (op->getNumOperands() == 0)
      return op->getName().stripDialect().str();
    filter = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(filter);
  return roleOfArgument(evaluate, argument.getArgNumber()).getName().str();
}

namespace {

struct FoldNorms : tandem::impl::FoldNormsBase<FoldNorms> {
  void runOnOperation() final {
    FailureOr<func::FuncOp> evaluate = findFrozenProgram(getOperation());
    if (failed(evaluate))
      return signalPassFailure();
    if (!*evaluate)
      return markAllAnalysesPreserved();
    FrozenValues frozen(*evaluate);
    for (auto conv : llvm::to_vector(evaluate->getOps<Conv2dOp>())) {
      Type element = getElementTypeOrSelf(conv->getResult(0));
      if ((!element.isF32() && !element.isF64()) ||
          !frozen.dependsOnVariables(conv.getW()) ||
          frozen.contains(conv.getX()))
        continue;
      Chain chain(conv, frozen);
      if (!chain.hasScale())
        continue;
      chain.fold(nameOf(*evaluate, conv.getW()));
      ++folded;
    }
  }
};

} // namespace
