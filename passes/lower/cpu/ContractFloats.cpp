//===- ContractFloats.cpp - products and sums that are rounded as one -----===//
#include "passes/Passes.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {
#define GEN_PASS_DEF_CONTRACTFLOATS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
struct ContractFloats : tandem::impl::ContractFloatsBase<ContractFloats> {
  void runOnOperation() final {
    if (!usesFastMath(getOperation()))
      return markAllAnalysesPreserved();
    auto contract = arith::FastMathFlags::contract;
    getOperation().walk([&](arith::ArithFastMathInterface op) {
      if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
        return;
      auto flags = op.getFastMathFlagsAttr().getValue() | contract;
      op->setAttr(op.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(&getContext(), flags));
      ++contracted;
    });
  }
};
} // namespace
