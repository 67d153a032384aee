//===- ElementaryFunctions.cpp - what no target has instructions for ------===//
//
// The methods and coefficients of asin, acos and atan are those of fdlibm (Sun
// Microsystems, 1993), which C libraries have taken over; branches are selects.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/ElementaryFunctions.h"
#include "passes/lower/common/DoubleFunctions.h"
#include "passes/lower/common/Formula.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using tandem::lower::Formula;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// pi/2 in two parts.
static constexpr double kHalfPi = 0x1.921fb54442d18p+0;
static constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

/// e^x - 1 = 2^k (e^r - 1) + (2^k - 1), with x = k log(2) + r.
static Formula expm1(const Formula &x) {
  Formula k = (x * 1.44269504088896340736).round();
  // Beyond, 2^k - 1 is -1 or 2^k.
  k = (k > -60.0).select(k, -60.0);
  k = (k < 60.0).select(k, 60.0);
  Formula r = k.fma(-0x1.62e42fefa3800p-1, x);
  r = k.fma(-0x1.ef35793c76730p-45, r);
  Formula p =
      (r * r) * r.polynomial({1.0 / 87178291200, 1.0 / 6227020800,
                              1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                              1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                              1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5}) +
      r;
  Formula power = (k.toInteger().plus(1023) << 52).asNumber();
  Formula y = power.fma(p, power - 1.0);
  y = (x < -40.0).select(-1.0, y);
  y = (x > 40.0).select(tandem::lower::exponential(x, x.like(0.0)), y);
  return (x.abs() < 0x1p-54).select(x, y); // the sign of 0 too
}

/// e^|x| / 2, of |x| from 22 on, where e^-|x| is lost beside it; e^|x| alone
/// may be too large.
static Formula halfExponential(const Formula &a) {
  Formula root = tandem::lower::exponential(a * 0.5, a.like(0.0));
  return root * 0.5 * root;
}

static Formula sinh(const Formula &x) {
  Formula a = x.abs();
  Formula e = expm1((a < 22.0).select(a, 22.0));
  Formula y = (e + e / (e + 1.0)) * 0.5;
  y = (a >= 22.0).select(halfExponential(a), y);
  y = x.isNaN().select(x, y);
  return y.withSign(x);
}

static Formula cosh(const Formula &x) {
  Formula a = x.abs();
  Formula e = tandem::lower::exponential(a, a.like(0.0));
  Formula y = e * 0.5 + x.like(0.5) / e;
  return (a >= 22.0).select(halfExponential(a), y);
}

//===----------------------------------------------------------------------===//
// Angles
//===----------------------------------------------------------------------===//

static Formula tan(const Formula &x) {
  return tandem::lower::sine(x, /*isCosine=*/false) /
         tandem::lower::sine(x, /*isCosine=*/true);
}

/// atan(x) of x >= 0: with c = 0, 1/2, 1, 3/2 or infinity, which is nearest,
/// atan(c) + atan((x - c) / (1 + c x)).
static Formula atanPositive(const Formula &x) {
  constexpr double limits[] = {0.4375, 0.6875, 1.1875, 2.4375};
  // Of (a x - b) / (a + b x), which is (x - c) / (1 + c x) with c = b / a.
  constexpr double a[] = {1.0, 2.0, 1.0, 1.0, 0.0};
  constexpr double b[] = {0.0, 1.0, 1.0, 1.5, 1.0};
  constexpr double high[] = {0.0, 4.63647609000806093515e-01,
                             7.85398163397448278999e-01,
                             9.82793723247329054082e-01, kHalfPi};
  constexpr double low[] = {0.0, 2.26987774529616870924e-17,
                            3.06161699786838301793e-17,
                            1.39033110312309984516e-17, kHalfPiLow};
  auto choose = [&](const double *values) {
    Formula value = x.like(values[4]);
    for (int i = 3; i >= 0; --i)
      value = (x < limits[i]).select(values[i], value);
    return value;
  };
  Formula p = choose(a), q = choose(b);
  // With a = 0, x may be infinite: -1/x.
  Formula isFar = x >= limits[3];
  Formula numerator = isFar.select(-1.0, p * isFar.select(0.0, x) - q);
  Formula denominator = isFar.select(x, p + q * x);
  Formula u = (x < limits[0]).select(x, numerator / denominator);
  Formula z = u * u;
  Formula rest =
      u * z *
      z.polynomial({1.62858201153657823623e-02, -3.65315727442169155270e-02,
                    4.97687799461593236017e-02, -5.83357013379057348645e-02,
                    6.66107313738753120669e-02, -7.69187620504482999495e-02,
                    9.09088713343650656196e-02, -1.11111104054623557880e-01,
                    1.42857142725034663711e-01, -1.99999999998764832476e-01,
                    3.33333333333329318027e-01});
  return choose(high) - ((rest - choose(low)) - u);
}

static Formula atan(const Formula &x) {
  Formula y = atanPositive(x.abs());
  y = (x.abs() < 0x1p-27).select(x.abs(), y);
  return y.withSign(x);
}

/// The angle of the point (x, y).
static Formula atan2(const Formula &y, const Formula &x) {
  Formula a = x.abs(), b = y.abs();
  Formula quotient = b / a;
  quotient = ((a == kInfinity) & (b == kInfinity)).select(1.0, quotient);
  quotient = (b == 0.0).select(0.0, quotient); // of 0 / 0 too
  Formula angle = atanPositive(quotient);
  angle = (quotient < 0x1p-27).select(quotient, angle);
  Formula left = x.like(2 * kHalfPi) - (angle - 2 * kHalfPiLow);
  angle = (x.asBits() >> 63).is(1).select(left, angle).withSign(y);
  return (x.isNaN() | y.isNaN()).select(kNaN, angle);
}

/// (asin(x) - x) / x with z = x^2 <= 1/4
static Formula asinRest(const Formula &z) {
  Formula p =
      z.polynomial({3.47933107596021167570e-05, 7.91534994289814532176e-04,
                    -4.00555345006794114027e-02, 2.01212532134862925881e-01,
                    -3.25565818622400915405e-01, 1.66666666666666657415e-01});
  Formula q = z.polynomial(
      {7.70381505559019352791e-02, -6.88283971605453293030e-01,
       2.02094576023350569471e+00, -2.40339491173441421878e+00, 1.0});
  return z * p / q;
}

namespace {
/// s = sqrt((1 - |x|) / 2) as the sum of `high`, half the bits, and `low`; and
/// the rest of asin(s).
struct NearOne {
  Formula s, high, low, rest;
};
} // namespace

static NearOne nearOne(const Formula &a) {
  Formula z = (a.like(1.0) - a) * 0.5, s = z.sqrt();
  Formula high = (s.asBits() & 0xffffffff00000000).asNumber();
  Formula sum = s + high;
  Formula low = (sum == 0.0).select(0.0, (z - high * high) / sum);
  return {s, high, low, asinRest(z)};
}

static Formula asin(const Formula &x) {
  Formula a = x.abs();
  Formula near = a.fma(asinRest(a * a), a);
  // pi/2 - 2 asin(s)
  NearOne n = nearOne(a);
  constexpr double quarterPi = kHalfPi / 2;
  Formula p = n.s * n.rest * 2.0 - (n.low.like(kHalfPiLow) - n.low * 2.0);
  Formula q = n.high.like(quarterPi) - n.high * 2.0;
  Formula far = p.like(quarterPi) - (p - q);
  return (a < 0.5).select(near, far).withSign(x);
}

static Formula acos(const Formula &x) {
  Formula a = x.abs();
  Formula near =
      x.like(kHalfPi) - (x - (x.like(kHalfPiLow) - x * asinRest(x * x)));
  NearOne n = nearOne(a);
  Formula positive = (n.high + n.s.fma(n.rest, n.low)) * 2.0;
  Formula negative =
      x.like(2 * kHalfPi) - (n.s + (n.s * n.rest - kHalfPiLow)) * 2.0;
  Formula far = (x < 0.0).select(negative, positive);
  return (a < 0.5).select(near, far);
}

//===----------------------------------------------------------------------===//
// Remainders and powers
//===----------------------------------------------------------------------===//

namespace {
/// A finite |x| is mantissa * 2^(exponent - 1075).
struct Binary {
  Formula exponent, mantissa;
};
} // namespace

static Binary binaryOf(const Formula &x) {
  Formula raw = (x.asBits() >> 52) & 0x7ff;
  Formula isDenormal = raw.is(0);
  Formula mantissa = x.asBits() & 0x000fffffffffffff;
  return {isDenormal.select(raw.bits(1), raw),
          isDenormal.select(mantissa, mantissa | 0x0010000000000000)};
}

/// 2^n of -1022 <= n <= 1023
static Formula powerOfTwo(const Formula &n) {
  return (n.plus(1023) << 52).asNumber();
}

/// Long division: of the numerator's bits as many at once as fit beside a
/// remainder of 53.
static Formula remainder(const Formula &x, const Formula &y) {
  Binary p = binaryOf(x), q = binaryOf(y);
  Formula divisor = q.mantissa.is(0).select(q.mantissa.bits(1), q.mantissa);
  Formula first = p.mantissa.rest(divisor);
  Formula distance = p.exponent.minus(q.exponent);
  Formula rest =
      distance.loop(11, first, [&](const Formula &at, const Formula &sum) {
        Formula left = distance.minus(at);
        Formula step = left.isBelow(left.bits(11)).select(left, left.bits(11));
        return (sum << step).rest(divisor);
      });
  // In two steps: the power of two may be denormal, the result is exact.
  Formula scale = q.exponent.plus(-1075), half = scale.shiftedSigned(1);
  Formula result =
      rest.toNumber() * powerOfTwo(half) * powerOfTwo(scale.minus(half));
  Formula isLess = (distance >> 63).is(1) | (y.abs() == kInfinity);
  result = isLess.select(x.abs(), result).withSign(x);
  Formula isDefined = (x.abs() < kInfinity) & (y.abs() > 0.0);
  return isDefined.select(result, kNaN);
}

namespace {
template <typename Op, Formula (*Function)(const Formula &)>
struct ExpandUnary : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Formula x(rewriter, op.getLoc(), op.getOperand());
    if (op.getType().isF64())
      rewriter.replaceOp(op, Value(Function(x)));
    else if (op.getType().isF32())
      rewriter.replaceOp(op, Value(Function(x.widened()).narrowed()));
    else
      return failure();
    return success();
  }
};

template <typename Op, Formula (*Function)(const Formula &, const Formula &)>
struct ExpandBinary : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Formula x(rewriter, op.getLoc(), op.getLhs());
    Formula y(rewriter, op.getLoc(), op.getRhs());
    if (op.getType().isF64())
      rewriter.replaceOp(op, Value(Function(x, y)));
    else if (op.getType().isF32())
      rewriter.replaceOp(op,
                         Value(Function(x.widened(), y.widened()).narrowed()));
    else
      return failure();
    return success();
  }
};

/// Squares the base for each bit of the exponent.
struct ExpandPower : OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IPowIOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!type.isSignlessInteger())
      return failure();
    Location loc = op.getLoc();
    auto number = [&](OpBuilder &b, int64_t n) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n));
    };
    Value zero = number(rewriter, 0), one = number(rewriter, 1);
    auto loop = scf::WhileOp::create(
        rewriter, loc, TypeRange{type, type, type},
        ValueRange{op.getRhs(), op.getLhs(), one},
        [&](OpBuilder &b, Location, ValueRange carried) {
          Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                               carried[0], zero);
          scf::ConditionOp::create(b, loc, goesOn, carried);
        },
        [&](OpBuilder &b, Location, ValueRange carried) {
          Value bit = arith::AndIOp::create(b, loc, carried[0], one);
          Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                              bit, zero);
          Value product = arith::MulIOp::create(b, loc, carried[2], carried[1]);
          Value result =
              arith::SelectOp::create(b, loc, isSet, product, carried[2]);
          Value square = arith::MulIOp::create(b, loc, carried[1], carried[1]);
          Value rest = arith::ShRUIOp::create(b, loc, carried[0], one);
          scf::YieldOp::create(b, loc, ValueRange{rest, square, result});
        });
    rewriter.replaceOp(op, loop.getResult(2));
    return success();
  }
};
} // namespace

void lower::populateElementaryFunctions(RewritePatternSet &patterns) {
  // Before the polynomials of MLIR, which are less accurate.
  patterns
      .add<ExpandUnary<math::ExpM1Op, expm1>, ExpandUnary<math::TanOp, tan>,
           ExpandUnary<math::AsinOp, asin>, ExpandUnary<math::AcosOp, acos>,
           ExpandUnary<math::AtanOp, atan>, ExpandUnary<math::SinhOp, sinh>,
           ExpandUnary<math::CoshOp, cosh>, ExpandBinary<math::Atan2Op, atan2>,
           ExpandBinary<arith::RemFOp, remainder>, ExpandPower>(
          patterns.getContext(), /*benefit=*/2);
}
