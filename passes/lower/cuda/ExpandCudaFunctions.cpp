//===- ExpandCudaFunctions.cpp - functions as a GPU's instructions --------===//
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"
#include "passes/lower/common/DoubleFunctions.h"
#include "passes/lower/common/ElementaryFunctions.h"
#include "passes/lower/common/HalfConversions.h"
#include "passes/lower/common/Polynomials.h"
#include "passes/lower/cuda/Functions.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tandem {
#define GEN_PASS_DEF_EXPANDCUDAFUNCTIONS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// An op of math that the GPU has instructions for, as an intrinsic of LLVM.
/// Left to itself, convert-gpu-to-nvvm makes calls of libdevice of them, and an
/// approximate sqrt.
template <typename Op> struct ToIntrinsic : OpRewritePattern<Op> {
  ToIntrinsic(MLIRContext *context, StringRef name)
      : OpRewritePattern<Op>(context), name(name) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto call = LLVM::CallIntrinsicOp::create(
        rewriter, op.getLoc(), op.getType(), rewriter.getStringAttr(name),
        op->getOperands());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
  StringRef name;
};

struct ExpandCudaFunctions
    : tandem::impl::ExpandCudaFunctionsBase<ExpandCudaFunctions> {
  void runOnOperation() final {
    MLIRContext *context = &getContext();
    // Quotients of an exponential, while it is an op.
    RewritePatternSet quotients(context), patterns(context);
    lower::cuda::populateLogistic(quotients);
    if (failed(applyPatternsGreedily(getOperation(), std::move(quotients))))
      return signalPassFailure();
    lower::cuda::populateFunctions(patterns);
    lower::populatePolynomials(patterns);
    lower::populateDoubleFunctions(patterns);
    lower::populateElementaryFunctions(patterns);
    lower::populateIntegersToHalf(patterns);
    patterns.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs");
    patterns.add<ToIntrinsic<math::CeilOp>>(context, "llvm.ceil");
    patterns.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign");
    patterns.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor");
    patterns.add<ToIntrinsic<math::RoundOp>>(context, "llvm.round");
    patterns.add<ToIntrinsic<math::RoundEvenOp>>(context, "llvm.roundeven");
    patterns.add<ToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt");
    patterns.add<ToIntrinsic<math::TruncOp>>(context, "llvm.trunc");
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
