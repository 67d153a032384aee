//===- Math.cpp - functions of one number ---------------------------------===//
//
// Floats are computed in f32 at least, and rounded once. Where a formula would
// leave what floats hold although its value does not, another one is used; a
// branch that is not taken sees a harmless number, so that nothing undefined
// comes into the gradient.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "ir/Ops.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

static constexpr double kLog2 = 0.69314718055994530942;
static constexpr double kLog10 = 2.30258509299404568402;

static Expr logOnePlus(const Expr &x) {
  return x.wrap(Log1pOp::create(*x.builder, x.loc, x.value));
}

static CallResults reciprocal(Call &call) {
  return widened(call, [](const Expr &x) { return 1.0 / x; });
}

static CallResults square(Call &call) {
  if (isBool(call[0]))
    return call.fail("expected operand #0 to have numbers, but got bools");
  if (!isFloat(call[0]))
    return results({call[0] * call[0]});
  return widened(call, [](const Expr &x) { return x * x; });
}

static CallResults logarithm2(Call &call) {
  return widened(call, [](const Expr &x) { return log(x) * (1 / kLog2); });
}

static CallResults logarithm10(Call &call) {
  return widened(call, [](const Expr &x) { return log(x) * (1 / kLog10); });
}

static CallResults exponential2(Call &call) {
  return widened(call, [](const Expr &x) { return pow(x.like(2.0), x); });
}

//===----------------------------------------------------------------------===//
// Inverse hyperbolic functions
//===----------------------------------------------------------------------===//

/// From here on x^2 + 1 is x^2 even in f64, and is finite in f32 up to here.
static constexpr double kLarge = 1e10;

/// asinh of x >= 0: logOnePlus(x + x^2 / (1 + sqrt(x^2 + 1))), which is
/// accurate near 0; log(2 x) where x^2 might overflow.
static Expr asinhPositive(const Expr &x) {
  Expr large = compare(ComparePredicate::gt, x, x.like(kLarge));
  Expr s = select(large, x.like(1.0), x), l = select(large, x, x.like(1.0));
  Expr sum = s + s * s / (1.0 + sqrt(s * s + 1.0));
  return select(large, log(l) + kLog2, logOnePlus(sum));
}

static CallResults inverseSinh(Call &call) {
  return widened(call, [](const Expr &x) {
    Expr negative = isLess(x, 0.0);
    Expr y = asinhPositive(select(negative, -x, x));
    return select(negative, -y, y);
  });
}

static CallResults inverseCosh(Call &call) {
  return widened(call, [](const Expr &x) {
    Expr large = compare(ComparePredicate::gt, x, x.like(kLarge));
    Expr t = select(large, x.like(1.0), x) - 1.0;
    Expr l = select(large, x, x.like(1.0));
    // The root of the product would be a number again below -1, and its
    // derivative at 0 one of 0 times infinity.
    Expr root = sqrt(t) * sqrt(t + 2.0);
    return select(large, log(l) + kLog2, logOnePlus(t + root));
  });
}

static CallResults inverseTanh(Call &call) {
  return widened(call, [](const Expr &x) {
    return 0.5 * (logOnePlus(x) - logOnePlus(-x));
  });
}

//===----------------------------------------------------------------------===//
// Parts of numbers
//===----------------------------------------------------------------------===//

static CallResults fraction(Call &call) {
  return widened(call, [&](const Expr &x) {
    Expr whole = call.op("trunc", x.value);
    return whole ? x - whole : whole;
  });
}

static CallResults nanToNum(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  Expr x = call[0];
  const auto &semantics = cast<FloatType>(elementOf(x)).getFloatSemantics();
  double largest = APFloat::getLargest(semantics).convertToDouble();
  double nan = call.number("nan", 0.0);
  double high = call.number("posinf", largest);
  double low = call.number("neginf", -largest);
  Expr y = select(isNaN(x), x.like(nan), x);
  y = select(isEqual(x, kInfinity), x.like(high), y);
  y = select(isEqual(x, -kInfinity), x.like(low), y);
  return results({y});
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// A bool for each element; integers are finite.
template <typename Formula>
static CallResults question(Call &call, bool ofIntegers, Formula formula) {
  Expr x = call[0];
  if (isFloat(x))
    return results({formula(x)});
  return results({call.full(call.builder.getI1Type(), x.shape(), ofIntegers)});
}

static CallResults isNaNFunction(Call &call) {
  return question(call, false, [](const Expr &x) { return isNaN(x); });
}

static CallResults isInf(Call &call) {
  bool positive = call.flag("detect_positive", true);
  bool negative = call.flag("detect_negative", true);
  return question(call, false, [&](const Expr &x) {
    Expr no = call.full(call.builder.getI1Type(), x.shape(), 0);
    Expr above = positive ? isEqual(x, kInfinity) : no;
    Expr below = negative ? isEqual(x, -kInfinity) : no;
    return logicalOr(above, below);
  });
}

static CallResults isFinite(Call &call) {
  return question(call, true, [&](const Expr &x) {
    return isLess(absolute(call, x), kInfinity);
  });
}

void tandem::addMathFunctions(FunctionTable &table) {
  table.family("Math");
  table.add("reciprocal(x)", "1 / x", reciprocal);
  table.add("square(x)", "x x", square);
  table.add("log2(x)", "the logarithm to base 2", logarithm2);
  table.add("log10(x)", "the logarithm to base 10", logarithm10);
  table.add("exp2(x)", "2 to the power of x", exponential2);
  table.add("asinh(x)", "the inverse of sinh", inverseSinh);
  table.add("acosh(x)", "the inverse of cosh; NaN below 1", inverseCosh);
  table.add("atanh(x)", "the inverse of tanh; NaN outside of [-1, 1]",
            inverseTanh);
  table.add("frac(x)", "x - trunc(x)", fraction);
  table.add("nan_to_num(x; nan=0.0, posinf, neginf)",
            "x with numbers for NaN and the infinities, which are the largest "
            "and the least of the type by default; no gradient there",
            nanToNum);
  table.add("isnan(x)", "whether x is NaN", isNaNFunction);
  table.add("isinf(x; detect_positive=true, detect_negative=true)",
            "whether x is infinite", isInf);
  table.add("isfinite(x)", "whether x is neither infinite nor NaN", isFinite);
}
