//===- ExpandScalars.cpp - functions of floats as arithmetic --------------===//
#include "passes/Passes.h"
#include "passes/lower/common/DoubleFunctions.h"
#include "passes/lower/common/ElementaryFunctions.h"
#include "passes/lower/common/HalfConversions.h"
#include "passes/lower/common/Polynomials.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tandem {
#define GEN_PASS_DEF_EXPANDSCALARS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
struct ExpandScalars : tandem::impl::ExpandScalarsBase<ExpandScalars> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    lower::FloatOptions options{.hasScale = hasFeature(func, "avx512f"),
                                .isFast = usesFastMath(func)};
    // Quotients of an exponential, while it is an op.
    RewritePatternSet sigmoids(&getContext()), patterns(&getContext());
    lower::populateLogistic(sigmoids, options);
    if (failed(applyPatternsGreedily(func, std::move(sigmoids))))
      return signalPassFailure();
    lower::populatePolynomials(patterns, options);
    lower::populateElementaryFunctions(patterns);
    lower::populateDoubleLog1p(patterns);
    bool convertsHalves = hasFeature(func, "f16c") || hasFeature(func, "neon");
    lower::populateHalfConversions(patterns, convertsHalves);
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(func, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
