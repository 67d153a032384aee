//===- DoubleFunctions.cpp - functions of f64 without libm
//-----------------===//
//
// What libm does, in few branches: reduction of the argument, then a
// polynomial. Coefficients of Taylor series where those are as short, else of
// interpolation at Chebyshev's points, whose error is below that of f64.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/DoubleFunctions.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using tandem::lower::Formula;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// log(2): the first part has zeros at its end, so that its products with
/// exponents are exact.
static constexpr double kLog2High = 0x1.62e42fefa3800p-1;
static constexpr double kLog2Low = 0x1.ef35793c76730p-45;

/// e^x = 2^k e^r with x = k log(2) + r and |r| <= log(2) / 2.
Formula lower::exponential(const Formula &x, const Formula &low) {
  Formula k = (x * 1.44269504088896340736).round();
  // Bounded, so that it is an integer whatever x is.
  k = (k > -1100.0).select(k, -1100.0);
  k = (k < 1100.0).select(k, 1100.0);
  Formula r = k.fma(-kLog2High, x);
  r = k.fma(-kLog2Low, r) + low;
  Formula p =
      r.polynomial({1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
                    1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                    1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
  // In two steps, since 2^k alone may be too large or too small.
  Formula n = k.toInteger(), half = n.shiftedSigned(1);
  auto power = [](const Formula &exponent) {
    return (exponent.plus(1023) << 52).asNumber();
  };
  Formula y = p * power(half) * power(n.minus(half));
  y = (x > 709.8).select(kInfinity, y);
  return (x < -746.0).select(0.0, y);
}

namespace {
/// x = 2^exponent * mantissa, with a mantissa from sqrt(1/2) to sqrt(2); of
/// positive finite numbers.
struct Parts {
  Formula exponent, mantissa;
};

Parts split(const Formula &x) {
  Formula isSmall = x < 0x1p-1022;
  Formula bits = isSmall.select(x * 0x1p54, x).asBits();
  // From the bits of sqrt(1/2) on, the exponent counts one higher.
  Formula shifted = bits.plus(0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  Formula exponent = (shifted >> 52).plus(-1023).toNumber();
  exponent = isSmall.select(exponent - 54.0, exponent);
  Formula mantissa =
      (shifted & 0x000fffffffffffff).plus(0x3fe6a09e667f3bcd).asNumber();
  return {exponent, mantissa};
}

/// 2 (atanh(s) - s) / s, with z = s^2 up to 0.0295.
Formula atanhRest(const Formula &z) {
  SmallVector<double> coefficients;
  for (int n = 21; n >= 3; n -= 2)
    coefficients.push_back(2.0 / n);
  return z * z.polynomial(coefficients);
}

/// exponent * log(2) + log(1 + f) + correction
Formula logOf(const Formula &exponent, const Formula &f,
              const Formula &correction) {
  Formula s = f / (f + 2.0), z = s * s, square = f * f * 0.5;
  Formula rest = s * (square + atanhRest(z));
  Formula low = exponent.fma(kLog2Low, correction);
  return exponent * kLog2High - ((square - (rest + low)) - f);
}

/// `y`, but what a logarithm is where `x` is no positive finite number.
Formula logEdges(const Formula &x, const Formula &y) {
  Formula result = (x == 0.0).select(-kInfinity, y);
  result = (x == kInfinity).select(x, result);
  return ((x < 0.0) | x.isNaN()).select(kNaN, result);
}

Formula naturalLog(const Formula &x) {
  Parts parts = split(x);
  return logEdges(x, logOf(parts.exponent, parts.mantissa - 1.0, x.like(0.0)));
}

Formula log1p(const Formula &x) {
  Formula u = x + 1.0;
  Parts parts = split(u);
  // What is lost in 1 + x, relative to it.
  Formula lost = (u >= 2.0).select(u.like(1.0) - (u - x), x - (u - 1.0)) / u;
  Formula isNear = parts.exponent == 0.0;
  Formula f = isNear.select(x, parts.mantissa - 1.0);
  Formula y = logOf(parts.exponent, f, isNear.select(0.0, lost));
  y = (x.abs() < 0x1p-54).select(x, y); // the sign of 0 too
  return logEdges(u, y);
}

Formula tanh(const Formula &x) {
  Formula z = x * x;
  Formula near =
      x.fma(z * z.polynomial({6.485163482793113e-06, -3.1201101425797402e-05,
                              9.2571161295567687e-05, -0.0002375906496055562,
                              0.00058966065777570434, -0.0014557754120478055,
                              0.0035921217511549622, -0.0088632351032408782,
                              0.021869488519008305, -0.053968253967896992,
                              0.13333333333333042, -0.33333333333333331}),
            x);
  Formula e = lower::exponential(x.abs() * 2.0, x.like(0.0));
  Formula far = (x.like(1.0) - x.like(2.0) / (e + 1.0)).withSign(x);
  return (x.abs() < 0.625).select(near.withSign(x), far);
}

Formula erf(const Formula &x) {
  Formula a = x.abs(), z = x * x;
  Formula near =
      x * z.polynomial({5.9571761477489113e-11, -1.1372848856791674e-09,
                        1.4659775274047436e-08, -1.6350312701054695e-07,
                        1.6461000484121368e-06, -1.4925595266831182e-05,
                        0.0001205533111164271, -0.000854832698083379,
                        0.0052239776248180145, -0.026866170645076792,
                        0.11283791670954879, -0.37612638903183748,
                        1.1283791670955126});
  // erf(x) = 1 - e^(-x^2) g(t)
  Formula t = (a - 2.5) / (a + 2.5);
  Formula g = t.polynomial(
      {-1.5876338931273441e-06, -2.2328516517555215e-06, 7.4997350507632989e-06,
       1.8596747731144528e-05, -3.4175718896856294e-05, -0.00012887483134837842,
       0.00022837996332576431, 0.00087591528757743279, -0.0026423659518134547,
       -0.0039937011601230291, 0.039922539075465231, -0.12503305237891782,
       0.25171319321744878, -0.37173673394897294, 0.21080636406114359});
  Formula far = x.like(1.0) - lower::exponential(-z, x.like(0.0)) * g;
  far = (a > 6.0).select(1.0, far).withSign(x);
  return (a >= 1.0).select(far, near);
}

/// log(x) of a positive finite number as a sum of two, to 64 bits.
struct Sum {
  Formula high, low;
};

Sum exactLog(const Formula &x) {
  Parts parts = split(x);
  Formula f = parts.mantissa - 1.0;
  // s = f / (2 + f), in two parts, and its square.
  Formula d = f + 2.0, dLow = f - (d - 2.0);
  Formula s = f / d;
  Formula sLow = ((-s).fma(d, f) - s * dLow) / d;
  Formula z = s * s;
  Formula zLow = s.fma(s, -z) + s * sLow * 2.0;
  // log(1 + f) = 2 s + s (2/3 z + z (2/5 z + ...)); the second term is less
  // than a hundredth of the first.
  constexpr double twoThirds = 0x1.5555555555555p-1;
  SmallVector<double> coefficients;
  for (int n = 25; n >= 5; n -= 2)
    coefficients.push_back(2.0 / n);
  Formula c = z * twoThirds;
  Formula cLow = z.fma(twoThirds, -c) + z * 0x1.5555555555555p-55 +
                 zLow * twoThirds + z * (z * z.polynomial(coefficients));
  Formula t = s * c;
  Formula tLow = s.fma(c, -t) + s * cLow + sLow * c;
  // From the largest to the smallest: each sum's rounding error is known.
  Formula first = parts.exponent * kLog2High, second = s * 2.0;
  Formula high = first + second;
  // |first| >= |second|, or first is 0.
  Formula error = second - (high - first);
  Formula sum = high + t;
  error = error + (t - (sum - high));
  Formula low = (parts.exponent.fma(kLog2Low, sLow * 2.0) + tLow) + error;
  Formula total = sum + low;
  return {total, low - (total - sum)};
}

/// |x|^y without the cases where x is 0, infinite or NaN.
Formula power(const Formula &x, const Formula &y) {
  Sum log = exactLog(x.abs());
  Formula high = y * log.high;
  Formula low = y.fma(log.high, -high) + y * log.low;
  // Where the result is 0 or infinite anyhow, `low` may be NaN.
  low = (high.abs() < 2000.0).select(low, 0.0);
  return lower::exponential(high, low);
}

/// What C says of pow: `y` is what |x|^y is where x is neither 0 nor infinite.
Formula powEdges(const Formula &x, const Formula &y, const Formula &magnitude) {
  Formula a = x.abs();
  Formula isEdge = (a == 0.0) | (a == kInfinity);
  // 0^y and inf^y are 0 or infinite.
  Formula isLarge = (a == kInfinity) ^ (y < 0.0);
  Formula result =
      isEdge.select(isLarge.select(kInfinity, x.like(0.0)), magnitude);
  Formula isInteger = y.round() == y;
  Formula half = y * 0.5;
  Formula isOdd = isInteger & ((half.round() == half) ^ isInteger);
  Formula isNegative = x.asBits() >> 63;
  result = (isNegative.is(1) & isOdd).select(-result, result);
  Formula isFinite = a < kInfinity;
  Formula notReal =
      (x < 0.0) & isFinite & (isInteger ^ (x == x)); // x is no NaN here
  result = notReal.select(kNaN, result);
  result = (x.isNaN() | y.isNaN()).select(kNaN, result);
  Formula isOne =
      (x == 1.0) | (y == 0.0) | ((x == -1.0) & (y.abs() == kInfinity));
  return isOne.select(1.0, result);
}

/// An op of one f64 as `Function` of it.
template <typename Op, Formula (*Function)(const Formula &)>
struct Expand : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF64())
      return failure();
    Formula x(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOp(op, Value(Function(x)));
    return success();
  }
};

Formula exp(const Formula &x) { return lower::exponential(x, x.like(0.0)); }
Formula sin(const Formula &x) { return lower::sine(x, /*isCosine=*/false); }
Formula cos(const Formula &x) { return lower::sine(x, /*isCosine=*/true); }

struct ExpandPow : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    Formula x(rewriter, op.getLoc(), op.getLhs());
    Formula y(rewriter, op.getLoc(), op.getRhs());
    if (op.getType().isF64()) {
      rewriter.replaceOp(op, Value(powEdges(x, y, power(x, y))));
      return success();
    }
    if (!op.getType().isF32())
      return failure();
    // f64 has bits enough for f32 without a second part of the logarithm.
    x = x.widened();
    y = y.widened();
    Parts parts = split(x.abs());
    Formula log = logOf(parts.exponent, parts.mantissa - 1.0, x.like(0.0));
    Formula magnitude = lower::exponential(y * log, x.like(0.0));
    rewriter.replaceOp(op, Value(powEdges(x, y, magnitude).narrowed()));
    return success();
  }
};
} // namespace

void lower::populateDoubleLog1p(RewritePatternSet &patterns) {
  patterns.add<Expand<math::Log1pOp, log1p>>(patterns.getContext());
}

void lower::populateDoubleFunctions(RewritePatternSet &patterns) {
  patterns.add<Expand<math::ExpOp, exp>, Expand<math::LogOp, naturalLog>,
               Expand<math::Log1pOp, log1p>, Expand<math::SinOp, sin>,
               Expand<math::CosOp, cos>, Expand<math::TanhOp, tanh>,
               Expand<math::ErfOp, erf>, ExpandPow>(patterns.getContext());
}
