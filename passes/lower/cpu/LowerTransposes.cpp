//===- LowerTransposes.cpp - transposes of vectors as shuffles ------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tandem {
#define GEN_PASS_DEF_LOWERTRANSPOSES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;

namespace {
struct LowerTransposes : tandem::impl::LowerTransposesBase<LowerTransposes> {
  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    vector::populateVectorTransposeLoweringPatterns(
        patterns, vector::VectorTransposeLowering::Shuffle16x16);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
