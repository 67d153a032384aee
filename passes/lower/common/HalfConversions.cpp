//===- HalfConversions.cpp - f16 and bf16 without calls -------------------===//
#include "passes/lower/common/HalfConversions.h"
#include "passes/lower/common/FloatCode.h"

using namespace mlir;
using namespace tandem;
using tandem::lower::FloatCode;

static Type withElement(Type like, Type element) {
  if (auto shape = dyn_cast<VectorType>(like))
    return shape.clone(element);
  return element;
}

static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

/// `x`, an f64, as an f32: where it is none, the neighbour whose last digit is
/// 1, so that who rounds it again never takes it for the middle between two
/// numbers. (Boldo and Melquiond, "When double rounding is odd".)
static Value roundedToOdd(PatternRewriter &rewriter, Location loc, Value x) {
  using P = arith::CmpFPredicate;
  Value nearest = arith::TruncFOp::create(
      rewriter, loc, withElement(x.getType(), rewriter.getF32Type()), x);
  Value back = arith::ExtFOp::create(rewriter, loc, x.getType(), nearest);
  FloatCode w(rewriter, loc, nearest.getType());
  Value bits = w.bitsOf(nearest);
  Value below =
      w.select(P::OGT, w.abs(back), w.abs(x), w.sub(bits, w.integer(1)), bits);
  Value odd = w.select(P::ONE, back, x, w.either(below, w.integer(1)), bits);
  return w.ofBits(odd);
}

namespace {
/// To f64, by way of f32.
struct ExtendToDouble : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!isHalf(from) || !getElementTypeOrSelf(to).isF64())
      return failure();
    Value middle = arith::ExtFOp::create(
        rewriter, op.getLoc(), withElement(from, rewriter.getF32Type()),
        op.getIn());
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, to, middle);
    return success();
  }
};

/// From f64, by way of f32.
struct TruncateDouble : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(x.getType()).isF64() || !isHalf(op.getType()))
      return failure();
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(
        op, op.getType(), roundedToOdd(rewriter, op.getLoc(), x));
    return success();
  }
};

/// From integers: by way of f32, or to bf16, which has numbers as large, of
/// f64 where f32 would round them first. LLVM calls the compiler's library for
/// it; canonicalization makes these of conversions to wider types.
template <typename Op> struct FromInteger : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!isHalf(to))
      return failure();
    bool isLarge = getElementTypeOrSelf(to).isBF16() &&
                   getElementTypeOrSelf(from).getIntOrFloatBitWidth() > 16;
    Type wide = isLarge ? Type(rewriter.getF64Type()) : rewriter.getF32Type();
    Value x =
        Op::create(rewriter, op.getLoc(), withElement(to, wide), op.getIn());
    if (isLarge)
      x = roundedToOdd(rewriter, op.getLoc(), x);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, to, x);
    return success();
  }
};

struct ExtendHalf : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF16() ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    FloatCode w(rewriter, op.getLoc(), op.getType());
    Value bits = w.widened(op.getIn());
    Value sign = w.left(w.both(bits, 0x8000), 16);
    Value magnitude = w.left(w.both(bits, 0x7fff), 13);
    // The exponents' biases differ by 112; a product is right for denormals
    // too.
    Value finite = w.bitsOf(w.mul(w.ofBits(magnitude), w.number(0x1p112)));
    Value infinite = w.either(magnitude, w.integer(0x7f800000));
    Value result = w.select(arith::CmpIPredicate::uge, magnitude,
                            w.integer(0x0f800000), infinite, finite);
    rewriter.replaceOp(op, w.ofBits(w.either(result, sign)));
    return success();
  }
};

/// To the nearest f16, halves to even.
struct TruncateToHalf : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(x.getType()).isF32() ||
        !getElementTypeOrSelf(op.getType()).isF16())
      return failure();
    using P = arith::CmpIPredicate;
    FloatCode w(rewriter, op.getLoc(), x.getType());
    Value bits = w.bitsOf(x);
    Value sign = w.right(w.both(bits, static_cast<int32_t>(0x80000000)), 16);
    Value magnitude = w.both(bits, 0x7fffffff);
    // Adding 1/2 shifts a denormal's bits into place, and rounds them.
    Value small =
        w.sub(w.bitsOf(w.addFloat(w.ofBits(magnitude), w.number(0.5))),
              w.integer(0x3f000000));
    Value odd = w.both(w.right(magnitude, 13), 1);
    Value normal = w.right(
        w.add(w.add(magnitude, w.integer((15 - 127) * (1 << 23) + 0xfff)), odd),
        13);
    Value result =
        w.select(P::ult, magnitude, w.integer(113 << 23), small, normal);
    Value large = w.select(P::ugt, magnitude, w.integer(0x7f800000),
                           w.integer(0x7e00), w.integer(0x7c00));
    result = w.select(P::uge, magnitude, w.integer(143 << 23), large, result);
    rewriter.replaceOp(op, w.narrowed(w.either(result, sign)));
    return success();
  }
};
/// To the nearest bf16, halves to even; NaN to a quiet one. Nothing is selected
/// among results: LLVM would do that among numbers of bf16, and call for it the
/// compiler's library on processors without them.
struct TruncateToBrain : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(x.getType()).isF32() ||
        !getElementTypeOrSelf(op.getType()).isBF16())
      return failure();
    using P = arith::CmpFPredicate;
    FloatCode w(rewriter, op.getLoc(), x.getType());
    Value bits = w.bitsOf(x), none = w.integer(0);
    Value odd = w.both(w.right(bits, 16), 1);
    Value half = w.select(P::UNO, x, x, none, w.add(odd, w.integer(0x7fff)));
    Value quiet = w.select(P::UNO, x, x, w.integer(0x400000), none);
    Value high = w.right(w.either(w.add(bits, half), quiet), 16);
    Value low = arith::TruncIOp::create(
        rewriter, op.getLoc(), withElement(op.getType(), rewriter.getI16Type()),
        high);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), low);
    return success();
  }
};
} // namespace

void lower::populateIntegersToHalf(RewritePatternSet &patterns) {
  patterns.add<FromInteger<arith::SIToFPOp>, FromInteger<arith::UIToFPOp>>(
      patterns.getContext());
}

void lower::populateHalfConversions(RewritePatternSet &patterns,
                                    bool hasHalves) {
  MLIRContext *context = patterns.getContext();
  populateIntegersToHalf(patterns);
  patterns.add<ExtendToDouble, TruncateDouble>(context);
  // Before MLIR's.
  patterns.add<TruncateToBrain>(context, /*benefit=*/2);
  if (!hasHalves)
    patterns.add<ExtendHalf, TruncateToHalf>(context);
}
