//===- Polynomials.cpp - functions of f32 without libm --------------------===//
#include "passes/lower/common/Polynomials.h"
#include "passes/lower/common/FloatCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using tandem::lower::FloatCode;
using tandem::lower::FloatOptions;
using P = arith::CmpFPredicate;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// The least f32 whose power of e is a normal number.
static constexpr double kLogLeastNormal = -0x1.5d589ep+6;
/// log2(e) as an f32 and what that lacks.
static constexpr double kLog2E = 0x1.715476p+0, kLog2ERest = 0x1.4ae0bf8p-26;
/// Numbers of this size are integers: where it is added, a sum is rounded to
/// an integer, which is in the sum's last bits.
static constexpr double kInteger = 0x1.8p23;
static constexpr int32_t kIntegerBits = 0x4b400000;

//===----------------------------------------------------------------------===//
// Powers of two and of e
//===----------------------------------------------------------------------===//

/// The polynomial with these coefficients, that of the highest power first, of
/// |x| < 1 or so: a chain of half as many steps, which pairs of coefficients
/// side by side enter, for one more product.
static Value inPairs(FloatCode &w, Value x, ArrayRef<double> coefficients) {
  double last = coefficients.back();
  ArrayRef<double> rest = coefficients.drop_back();
  Value z = w.mul(x, x), sum;
  if (rest.size() % 2 != 0) {
    sum = w.number(rest[0]);
    rest = rest.drop_front();
  }
  for (; !rest.empty(); rest = rest.drop_front(2)) {
    Value pair = w.fma(x, w.number(rest[0]), w.number(rest[1]));
    sum = sum ? w.fma(sum, z, pair) : pair;
  }
  return w.fma(sum, x, w.number(last));
}

/// 2^f of |f| <= 1/2: of least relative error (2e-9) among the polynomials of
/// this degree that are 1 at 0.
static Value fractionalPower(FloatCode &w, Value f) {
  return inPairs(w, f,
                 {1.5353361912e-4, 1.3398874415e-3, 9.6184374577e-3,
                  5.5503324711e-2, 2.4022647910e-1, 6.9314720286e-1, 1.0});
}

/// The same but for 1e-7 of it.
static Value shortPower(FloatCode &w, Value f) {
  return inPairs(w, f,
                 {1.3264727e-3, 9.6715126e-3, 5.5507337e-2, 2.4022242e-1,
                  6.9314698e-1, 1.0});
}

namespace {
/// A power as 2^k 2^f with |f| <= 1/2.
struct Parts {
  Value f;
  Value bits; ///< k is the difference of these and kIntegerBits
};
} // namespace

/// The parts of e^(scale x), with |x| up to some hundreds. `isExact`: f is as
/// good as f32 can be; else it is off by 2^-26 |scale x|.
static Parts partsOf(FloatCode &w, Value x, double scale, bool isExact) {
  Value factor = w.number(scale * kLog2E);
  Value sum = w.fma(x, factor, w.number(kInteger));
  Value k = w.subFloat(sum, w.number(kInteger));
  Value f = w.fma(x, factor, w.neg(k));
  if (isExact)
    f = w.fma(x, w.number(scale * kLog2ERest), f);
  return {f, w.bitsOf(sum)};
}

/// 2^k as an f32; -126 <= k <= 127.
static Value wholePower(FloatCode &w, const Parts &parts) {
  return w.ofBits(w.add(w.left(parts.bits, 23), w.integer(127 << 23)));
}

/// e^x between 2^-126 and 2^127, which is never infinite.
static Value fastExponential(FloatCode &w, Value x) {
  Value low = w.number(-87.3), high = w.number(88.0);
  x = w.select(P::OGT, low, x, low, x);
  x = w.select(P::OLT, high, x, high, x);
  Parts parts = partsOf(w, x, 1.0, /*isExact=*/false);
  return w.mul(shortPower(w, parts.f), wholePower(w, parts));
}

//===----------------------------------------------------------------------===//
// Quotients
//===----------------------------------------------------------------------===//

/// 1/x but for 4e-5 of it, with 2^-120 <= x <= 2^125, where a division would
/// keep its unit busy for longer. The integer difference is off by a twentieth,
/// a straight line in the digits; the cubic polynomial in its product with x is
/// the one nearest to 1.
static Value roughReciprocal(FloatCode &w, Value x) {
  Value r = w.ofBits(w.sub(w.integer(0x7ef33400), w.bitsOf(x)));
  Value rest = w.fma(w.neg(x), r, w.number(1.50095987));
  return w.mul(r, w.fma(rest, rest, w.number(0.749037862)));
}

/// The same to 0.53 units in the last place.
static Value reciprocal(FloatCode &w, Value x) {
  Value r = roughReciprocal(w, x);
  return w.fma(r, w.fma(w.neg(x), r, w.number(1.0)), r);
}

/// y/x to 0.53 units in the last place; x as above, and y is 0 or both y and
/// the quotient are far from what f32 cannot hold.
static Value quotient(FloatCode &w, Value y, Value x) {
  Value r = roughReciprocal(w, x), q = w.mul(y, r);
  return w.fma(w.fma(w.neg(x), q, y), r, q);
}

/// e^x; with `dropsDenormals`, 0 where it is below 2^-126.
static Value exponential(OpBuilder &b, Location loc, Value x,
                         FloatOptions options, bool dropsDenormals) {
  FloatCode w(b, loc, x.getType());
  if (options.isFast)
    return fastExponential(w, x);
  // Comparisons with NaN do not hold: it passes.
  Value low = w.number(dropsDenormals ? kLogLeastNormal : -104.0);
  Value bounded = w.select(P::OGT, low, x, low, x);
  auto dropDenormals = [&](Value y) {
    return dropsDenormals ? w.select(P::OGT, low, x, w.number(0.0), y) : y;
  };
  if (options.hasScale) {
    Value high = w.number(89.0);
    bounded = w.select(P::OLT, high, bounded, high, bounded);
    Parts parts = partsOf(w, bounded, 1.0, /*isExact=*/true);
    Value k = w.sub(parts.bits, w.integer(kIntegerBits));
    return dropDenormals(
        w.call("llvm.ldexp", {fractionalPower(w, parts.f), k}));
  }
  Parts parts = partsOf(w, bounded, 1.0, /*isExact=*/true);
  // Of NaN the sum with infinity.
  auto withLarge = [&](Value y) {
    return w.select(P::OLE, x, w.number(0x1.62e42ep+6), y,
                    w.addFloat(x, w.number(kInfinity)));
  };
  Value bits = w.bitsOf(fractionalPower(w, parts.f));
  if (dropsDenormals)
    return withLarge(
        dropDenormals(w.ofBits(w.add(bits, w.left(parts.bits, 23)))));
  // The exponent is added to that of 2^f. Where the result may be denormal it
  // is 2^64 times as large first.
  using I = arith::CmpIPredicate;
  Value limit = w.integer(kIntegerBits - 120);
  Value raised = w.add(parts.bits, w.integer(64));
  Value k = w.select(I::slt, parts.bits, limit, raised, parts.bits);
  Value factor =
      w.select(I::slt, parts.bits, limit, w.number(0x1p-64), w.number(1.0));
  return withLarge(w.mul(w.ofBits(w.add(bits, w.left(k, 23))), factor));
}

namespace {
struct LowerExp : OpRewritePattern<math::ExpOp> {
  LowerExp(MLIRContext *context, FloatOptions options)
      : OpRewritePattern(context), options(options) {}

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    bool dropsDenormals =
        arith::bitEnumContainsAny(op.getFastmath(), lower::kDropsDenormals);
    rewriter.replaceOp(op, exponential(rewriter, op.getLoc(), op.getOperand(),
                                       options, dropsDenormals));
    return success();
  }
  FloatOptions options;
};

template <typename Op, Value (*Function)(FloatCode &, Value)>
struct LowerFunction : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    FloatCode w(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, Function(w, op.getOperand()));
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Sigmoid
//===----------------------------------------------------------------------===//

/// 1 / (1 + e^y), where y is x or, with `isNegated`, -x.
static Value logistic(FloatCode &w, Value x, bool isNegated, bool isFast) {
  // Where y is below -40, e^y is lost beside 1; above 105 the result is 0.
  Value low = w.number(isNegated ? -105.0 : -40.0);
  Value high = w.number(isNegated ? 40.0 : 105.0);
  x = w.select(P::OGT, low, x, low, x);
  x = w.select(P::OLT, high, x, high, x);
  Parts parts = partsOf(w, x, isNegated ? -1.0 : 1.0, /*isExact=*/!isFast);
  // The sum times 2^-27, so that it and its reciprocal are normal numbers.
  Value power = w.ofBits(w.add(w.left(parts.bits, 23), w.integer(100 << 23)));
  Value p = isFast ? shortPower(w, parts.f) : fractionalPower(w, parts.f);
  Value sum = w.fma(p, power, w.number(0x1p-27));
  return w.mul(reciprocal(w, sum), w.number(0x1p-27));
}

/// y where `x` is 1 + e^y.
static Value exponentOf(Value x) {
  auto sum = x.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return {};
  for (auto [one, other] : {std::pair(sum.getLhs(), sum.getRhs()),
                            std::pair(sum.getRhs(), sum.getLhs())})
    if (auto power = other.getDefiningOp<math::ExpOp>();
        power && matchPattern(one, m_OneFloat()))
      return power.getOperand();
  return {};
}

namespace {
/// A quotient with this flag is that of scalar::sigmoid; other types than f32
/// are divided, in vectors as in scalars.
struct LowerLogistic : OpRewritePattern<arith::DivFOp> {
  LowerLogistic(MLIRContext *context, FloatOptions options)
      : OpRewritePattern(context), options(options) {}

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!arith::bitEnumContainsAll(op.getFastmath(),
                                   arith::FastMathFlags::arcp))
      return failure();
    Value exponent = exponentOf(op.getRhs());
    if (!exponent || !matchPattern(op.getLhs(), m_OneFloat()) ||
        !getElementTypeOrSelf(op.getType()).isF32()) {
      rewriter.modifyOpInPlace(
          op, [&] { op.setFastmath(arith::FastMathFlags::none); });
      return success();
    }
    auto negated = exponent.getDefiningOp<arith::NegFOp>();
    FloatCode w(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op,
                       logistic(w, negated ? negated.getOperand() : exponent,
                                /*isNegated=*/negated, options.isFast));
    return success();
  }
  FloatOptions options;
};
} // namespace

void lower::populateLogistic(RewritePatternSet &patterns,
                             FloatOptions options) {
  patterns.add<LowerLogistic>(patterns.getContext(), options);
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// log(x) = e log(2) + log(1 + m) with x = 2^e (1 + m) and |m| <= 1/3.
static Value logarithm(FloatCode &w, Value x) {
  Value least = w.number(0x1p-126);
  Value normal = w.select(P::OLT, x, least, w.mul(x, w.number(0x1p23)), x);
  Value raised = w.select(P::OLT, x, least, w.number(-23.0), w.number(0.0));
  constexpr int32_t twoThirds = 0x3f2aaaab;
  Value exponent = w.both(w.sub(w.bitsOf(normal), w.integer(twoThirds)),
                          int32_t(0xff800000));
  Value m =
      w.subFloat(w.ofBits(w.sub(w.bitsOf(normal), exponent)), w.number(1.0));
  Value e = w.fma(w.toFloat(exponent), w.number(0x1p-23), raised);
  // The even and the odd powers side by side.
  Value z = w.mul(m, m);
  Value even =
      w.polynomial(z, {-0.130310059, -0.121483512, -0.166846126, -0.249996200});
  Value odd = w.polynomial(z, {0.140869141, 0.139814854, 0.200120345});
  Value p = w.fma(odd, m, even);
  p = w.fma(p, m, w.number(0.333331972));
  p = w.fma(p, m, w.number(-0.5));
  Value y = w.fma(e, w.number(0x1.62e43p-1), w.fma(p, z, m));
  y = w.select(P::OLT, x, w.number(kInfinity), y, x); // NaN too
  y = w.select(P::OLT, x, w.number(0.0), w.number(kNaN), y);
  return w.select(P::OEQ, x, w.number(0.0), w.number(-kInfinity), y);
}

/// log(1 + x) = log(u) + c / u, where u + c is 1 + x and u the rounded sum.
static Value logarithmOfNext(FloatCode &w, Value x) {
  Value one = w.number(1.0), u = w.addFloat(one, x);
  Value c = w.subFloat(x, w.subFloat(u, one));
  // Where u is larger, c is 0.
  Value large = w.number(0x1p100);
  Value bounded = w.select(P::OLT, large, u, large, u);
  Value y = w.fma(c, reciprocal(w, bounded), logarithm(w, u));
  y = w.select(P::OEQ, u, one, x, y);
  y = w.select(P::OEQ, u, w.number(0.0), w.number(-kInfinity), y);
  return w.select(P::OEQ, u, w.number(kInfinity), u, y);
}

//===----------------------------------------------------------------------===//
// tanh and erf
//===----------------------------------------------------------------------===//

/// An odd polynomial near 0, and 1 - 2 / (e^2|x| + 1) from 0.55 on.
static Value hyperbolicTangent(FloatCode &w, Value x) {
  Value z = w.mul(x, x);
  Value near = w.fma(w.mul(w.polynomial(z, {1.57394409e-2, -5.23025580e-2,
                                            1.33152470e-1, -3.33327681e-1}),
                           z),
                     x, x);
  // From 10 on it is 1.
  Value a = w.abs(x), high = w.number(10.0);
  Value bounded = w.select(P::OLT, high, a, high, a);
  Parts parts = partsOf(w, bounded, 2.0, /*isExact=*/false);
  Value sum =
      w.fma(fractionalPower(w, parts.f), wholePower(w, parts), w.number(1.0));
  Value far = w.fma(w.number(-2.0), reciprocal(w, sum), w.number(1.0));
  // Of zeros, too, the sign.
  return w.withSign(w.select(P::OGT, a, w.number(0.55), far, near), x);
}

/// e / (e + 2) with e = e^2|x| - 1 = 2^k (e^r - 1) + 2^k - 1, where r is in
/// [0, log(2)], so that nothing is cancelled.
static Value fastTangent(FloatCode &w, Value x) {
  Value a = w.abs(x), high = w.number(10.0);
  a = w.select(P::OLT, high, a, high, a);
  Value sum = w.addFloat(w.fma(a, w.number(2 * kLog2E), w.number(-0.5)),
                         w.number(kInteger));
  Value k = w.subFloat(sum, w.number(kInteger));
  Value r = w.fma(k, w.number(-0x1.62e43p-1), w.addFloat(a, a));
  Value p = w.polynomial(r, {1.8613634e-3, 7.9608262e-3, 4.1795977e-2,
                             1.6664739e-1, 5.0000089e-1});
  p = w.fma(w.mul(r, r), p, r);
  Value power = wholePower(w, {r, w.bitsOf(sum)});
  Value e = w.fma(power, p, w.subFloat(power, w.number(1.0)));
  return w.withSign(quotient(w, e, w.addFloat(e, w.number(2.0))), x);
}

/// An odd polynomial near 0, and from 0.93 on 1 - p(|x|)^4: the fourth root of
/// 1 - erf is smooth enough for a polynomial, and its rounding matters little.
static Value errorFunction(FloatCode &w, Value x) {
  Value z = w.mul(x, x), a = w.abs(x);
  Value near =
      w.fma(w.polynomial(z, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2,
                             1.12819925e-1, -3.76125336e-1, 1.28379166e-1}),
            x, x);
  // From there on it is 1.
  Value high = w.number(3.92);
  Value bounded = w.select(P::OLT, high, a, high, a);
  Value p =
      w.polynomial(bounded, {-2.859303213e-5, 2.779970422e-4, 1.005488684e-4,
                             -1.020892163e-2, 3.798142257e-2, -9.126340275e-3,
                             -1.006489308e-1, -2.900097477e-1, 1.001432075});
  p = w.mul(p, p);
  Value far = w.withSign(w.fma(w.neg(p), p, w.number(1.0)), x);
  return w.select(P::OGT, a, w.number(0.927734375), far, near);
}

//===----------------------------------------------------------------------===//
// sin and cos
//===----------------------------------------------------------------------===//

/// sin(x + quarters pi / 2). What is left of x after the nearest multiple of
/// pi / 2 is as exact as pi / 2 in three parts is: each product is rounded with
/// its sum, and the first of them not at all.
static Value sineAfter(FloatCode &w, Value x, int32_t quarters) {
  Value sum = w.fma(x, w.number(0x1.45f306p-1), w.number(kInteger));
  Value k = w.subFloat(w.number(kInteger), sum);
  Value y = x;
  for (double part :
       {0x1.921fb60000000p+0, -0x1.777a5c0000000p-25, -0x1.ee59da0000000p-50})
    y = w.fma(k, w.number(part), y);
  Value z = w.mul(y, y);
  Value sine = w.fma(w.mul(w.polynomial(z, {-1.9515295891e-4, 8.3321608736e-3,
                                            -1.6666654611e-1}),
                           z),
                     y, y);
  Value cosine =
      w.fma(w.polynomial(z, {2.443315711809948e-5, -1.388731625493765e-3,
                             4.166664568298827e-2}),
            w.mul(z, z), w.fma(w.number(-0.5), z, w.number(1.0)));
  Value turns = w.add(w.bitsOf(sum), w.integer(quarters));
  using I = arith::CmpIPredicate;
  Value zero = w.integer(0);
  Value made = w.select(I::eq, w.both(turns, 1), zero, sine, cosine);
  made = w.select(I::eq, w.both(turns, 2), zero, made, w.neg(made));
  return made;
}

/// `near`, or where x is far what the intrinsic gives, with a mark for
/// tandem-far-angles (compiler/emit/passes), which makes a branch of it once
/// loops are vectorized.
static Value orFar(FloatCode &w, Value x, Value near, StringRef intrinsic) {
  return w.select(P::OGT, w.abs(x), w.number(lower::kFarAngle),
                  w.call(intrinsic, x, LLVM::FastmathFlags::arcp), near);
}

/// Of zeros, too, the sign.
static Value sineOf(FloatCode &w, Value x) {
  Value near = sineAfter(w, x, 0);
  near = w.select(P::OLT, w.abs(x), w.number(0x1p-12), x, near);
  return orFar(w, x, near, "llvm.sin");
}
static Value cosineOf(FloatCode &w, Value x) {
  return orFar(w, x, sineAfter(w, x, 1), "llvm.cos");
}

void lower::populatePolynomials(RewritePatternSet &patterns,
                                FloatOptions options) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerExp>(context, options);
  patterns.add<LowerFunction<math::SinOp, sineOf>,
               LowerFunction<math::CosOp, cosineOf>,
               LowerFunction<math::LogOp, logarithm>,
               LowerFunction<math::Log1pOp, logarithmOfNext>,
               LowerFunction<math::ErfOp, errorFunction>>(context);
  if (options.isFast)
    patterns.add<LowerFunction<math::TanhOp, fastTangent>>(context);
  else
    patterns.add<LowerFunction<math::TanhOp, hyperbolicTangent>>(context);
}
