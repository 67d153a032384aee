//===- Functions.cpp - functions of f32 with the GPU's instructions
//--------===//
#include "passes/lower/cuda/Functions.h"
#include "passes/lower/common/FloatCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using tandem::lower::FloatCode;
using P = arith::CmpFPredicate;

static Value intrinsic(OpBuilder &b, Location loc, StringRef name, Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, x.getType(),
                                       b.getStringAttr(name), x)
      .getResult(0);
}

/// 1/x, of normal numbers to one unit in the last place; 0 for those above
/// 2^126.
static Value reciprocal(OpBuilder &b, Location loc, Value x) {
  return intrinsic(b, loc, "llvm.nvvm.rcp.approx.ftz.f", x);
}

/// e^x = 2^k 2^f with x log2(e) = k + f and |f| <= 1/2.
static Value exponential(OpBuilder &b, Location loc, Value x) {
  FloatCode w(b, loc, x.getType());
  // Numbers of this size are integers: the sum rounds, and its last bits are k.
  constexpr double large = 12582912.0; // 1.5 * 2^23
  Value log2e = w.number(1.4426950216293335);
  Value sum = w.fma(x, log2e, w.number(large));
  Value k = w.addFloat(sum, w.number(-large));
  Value f = w.fma(x, log2e, w.mul(k, w.number(-1.0)));
  f = w.fma(x, w.number(1.925963033500011665e-08), f);
  Value y = intrinsic(b, loc, "llvm.nvvm.ex2.approx.ftz", f);
  // 2^k as 2 * 2^(k - 1): 2^128 alone would be infinite.
  Value scale =
      w.ofBits(w.add(w.left(w.bitsOf(sum), 23), w.integer((127 - 1) << 23)));
  y = w.mul(w.addFloat(y, y), scale);
  y = w.select(P::OGT, x, w.number(89.0),
               w.number(std::numeric_limits<double>::infinity()), y);
  return w.select(P::OLT, x, w.number(-86.6), w.number(0.0), y);
}

namespace {
struct LowerExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOp(op, exponential(rewriter, op.getLoc(), op.getOperand()));
    return success();
  }
};

struct LowerTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::TanhOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    if (!op.getType().isF32())
      return failure();
    Location loc = op.getLoc();
    FloatCode w(rewriter, loc, x.getType());
    Value z = w.mul(x, x), p = w.number(-0.0062691197196497288);
    for (double c : {0.02111095904951479, -0.053873948848643334,
                     0.13332915366987452, -0.33333330332731548})
      p = w.fma(p, z, w.number(c));
    Value near = w.fma(w.mul(z, p), x, x);
    Value a = math::AbsFOp::create(rewriter, loc, x);
    Value e = exponential(rewriter, loc, w.addFloat(a, a));
    Value r = reciprocal(rewriter, loc, w.addFloat(e, w.number(1.0)));
    Value far = w.fma(r, w.number(-2.0), w.number(1.0));
    Value y = w.select(P::OLT, a, w.number(0.6), near, far);
    rewriter.replaceOpWithNewOp<math::CopySignOp>(op, y, x);
    return success();
  }
};

/// True if `x` is 1 + e^y.
static bool isOnePlusExp(Value x) {
  auto sum = x.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  return (matchPattern(sum.getLhs(), m_OneFloat()) &&
          sum.getRhs().getDefiningOp<math::ExpOp>()) ||
         (matchPattern(sum.getRhs(), m_OneFloat()) &&
          sum.getLhs().getDefiningOp<math::ExpOp>());
}

struct LowerLogistic : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32() || !matchPattern(op.getLhs(), m_OneFloat()) ||
        !isOnePlusExp(op.getRhs()))
      return failure();
    rewriter.replaceOp(op, reciprocal(rewriter, op.getLoc(), op.getRhs()));
    return success();
  }
};
} // namespace

void lower::cuda::populateFunctions(RewritePatternSet &patterns) {
  // Before the polynomials of all targets.
  patterns.add<LowerExp, LowerTanh>(patterns.getContext(), /*benefit=*/2);
}

void lower::cuda::populateLogistic(RewritePatternSet &patterns) {
  patterns.add<LowerLogistic>(patterns.getContext());
}
