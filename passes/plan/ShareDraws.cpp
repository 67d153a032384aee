//===- ShareDraws.cpp - kernels of other draws share their code -----------===//
//
// Dropout in each of many equal layers differs in the number of its draw alone.
// As a constant it would be in the code of each layer's kernels; so the numbers
// are read from memory:
//
//   %draw = constant [7, -1] : tensor<2xi64>; kernel (%draw, ...) { slice [0 :
//   1] }
//
// Of two elements, since one that repeats a number lies in the code as well.
// A program with one draw keeps it in its code.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "ir/Expr.h"
#include "ir/Ops.h"

#include "llvm/ADT/DenseSet.h"

namespace tandem {
#define GEN_PASS_DEF_SHAREDRAWS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
struct ShareDraws : tandem::impl::ShareDrawsBase<ShareDraws> {
  using ShareDrawsBase::ShareDrawsBase;
  void runOnOperation() final;
};
} // namespace

void ShareDraws::runOnOperation() {
  // Those of regions have their state from outside, and their draw as it is.
  SmallVector<std::pair<PhiloxOp, int64_t>> ops;
  llvm::SmallDenseSet<int64_t> numbers;
  for (auto philox : getOperation().getOps<PhiloxOp>())
    if (std::optional<int64_t> number = philox.getDrawNumber()) {
      ops.push_back({philox, *number});
      numbers.insert(*number);
    }
  if (numbers.size() < 2)
    return;
  OpBuilder b(&getContext());
  auto type = RankedTensorType::get({2}, b.getI64Type());
  for (auto [philox, number] : ops) {
    b.setInsertionPoint(philox);
    Value pair = ConstantOp::create(
        b, philox.getLoc(),
        DenseIntElementsAttr::get(type, ArrayRef<int64_t>{number, -1}));
    Value one = SliceOp::create(b, philox.getLoc(), pair, ArrayRef<int64_t>{0},
                                ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1});
    Expr draw = Expr(b, philox.getLoc(), one)
                    .reshape({})
                    .broadcastTo(philox.getY().getType().getShape(), {});
    philox.getDrawMutable().assign(draw);
    ++shared;
  }
}
