//===- ErrorFunctions.cpp - the complement and the inverse of erf ---------===//
//
// 1 - erf(x) has no digits left where erfc is small, so erfc has formulas of
// its own: for f32 the polynomials and for f64 the quotients of S. Moshier's
// Cephes library (ndtrf.c, ndtr.c). The inverse is M. Giles' "Approximating the
// erfinv function" (2010), for f64 with steps of Halley's method behind it.
// Branches that are not taken see harmless numbers.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "compiler/functions/Formula.h"
#include "ir/Ops.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// The polynomial with these coefficients, the highest first.
static Expr polynomial(const Expr &x, ArrayRef<double> coefficients) {
  Expr sum = x.like(coefficients.front());
  for (double c : coefficients.drop_front())
    sum = sum * x + c;
  return sum;
}

/// erfc(t) exp(t t) t for t >= 1.
static Expr tailOfSingle(const Expr &t) {
  static constexpr double below2[] = {
      2.326819970068386e-2,  -1.387039388740657e-1, 3.687424674597105e-1,
      -5.824733027278666e-1, 6.210004621745983e-1,  -4.944515323274145e-1,
      3.404879937665872e-1,  -2.741127028184656e-1, 5.638259427386472e-1};
  static constexpr double beyond[] = {
      -1.047766399936249e+1, 1.297719955372516e+1,  -7.495518717768503e+0,
      2.921019019210786e+0,  -1.015265279202700e+0, 4.218463358204948e-1,
      -2.820767439740514e-1, 5.641895067754075e-1};
  Expr y = 1.0 / (t * t);
  return select(formula::isLess(t, 2), polynomial(y, below2),
                polynomial(y, beyond));
}

static Expr tailOfDouble(const Expr &t) {
  static constexpr double p[] = {
      2.46196981473530512524e-10, 5.64189564831068821977e-1,
      7.46321056442269912687e0,   4.86371970985681366614e1,
      1.96520832956077098242e2,   5.26445194995477358631e2,
      9.34528527171957607540e2,   1.02755188689515710272e3,
      5.57535335369399327526e2};
  static constexpr double q[] = {1,
                                 1.32281951154744992508e1,
                                 8.67072140885989742329e1,
                                 3.54937778887819891062e2,
                                 9.75708501743205489753e2,
                                 1.82390916687909736289e3,
                                 2.24633760818710981792e3,
                                 1.65666309194161350182e3,
                                 5.57535340817727675546e2};
  static constexpr double r[] = {
      5.64189583547755073984e-1, 1.27536670759978104416e0,
      5.01905042251180477414e0,  6.16021097993053585195e0,
      7.40974269950448939160e0,  2.97886665372100240670e0};
  static constexpr double s[] = {1,
                                 2.26052863220117276590e0,
                                 9.39603524938001434673e0,
                                 1.20489539808096656605e1,
                                 1.70814450747565897222e1,
                                 9.60896809063285878198e0,
                                 3.36907645100081516050e0};
  return t * select(formula::isLess(t, 8), polynomial(t, p) / polynomial(t, q),
                    polynomial(t, r) / polynomial(t, s));
}

static CallResults complement(Call &call) {
  return widened(call, [](const Expr &given) {
    Expr x = detach(given), size = abs(x), whole = erf(given);
    Expr one = x.like(1.0), most = x.like(30.0);
    Expr isSmall = formula::isLess(size, 1);
    // exp(-900) is 0 in f64, too.
    Expr t =
        select(isSmall, one, select(formula::isGreater(size, 30), most, size));
    Expr tail = exp(-(t * t)) / t *
                (elementOf(x).isF64() ? tailOfDouble(t) : tailOfSingle(t));
    Expr y = select(isSmall, 1.0 - detach(whole),
                    select(formula::isLess(x, 0), 2.0 - tail, tail));
    // The derivatives are those of -erf: this adds 0.
    return y + (detach(whole) - whole);
  });
}

/// A step of Halley's method from y towards the inverse at x, with (erf(y) - x)
/// exp(y y). From 0.85 on, where y is at least 1, it is that of the
/// complements: they have digits left near 1.
static Expr halley(const Expr &x, const Expr &y) {
  Expr far = abs(x), isFar = formula::isGreater(far, 0.85);
  Expr t = select(isFar, abs(y), y.like(1.0));
  Expr rest = (1.0 - far) * exp(t * t) - tailOfDouble(t) / t;
  rest = select(formula::isLess(x, 0), -rest, rest);
  Expr r = select(isFar, rest, (erf(y) - x) * exp(y * y));
  r = r * 0.88622692545275801365; // sqrt(pi) / 2
  return y - r / (y * r + 1.0);
}

/// In f64. Polynomials for f32 know nothing of what is nearer to 1 than f32 is:
/// there y y is about l - log(pi l) / 2 where 1 - |x| is exp(-l).
static Expr refined(const Expr &x, const Expr &w, const Expr &y) {
  Expr isBeyond = formula::isGreater(w, 15);
  Expr l = select(isBeyond, -log1p(-abs(x)), x.like(20.0));
  Expr tail = sqrt(l - log(l * 3.14159265358979323846) * 0.5);
  tail = select(formula::isLess(x, 0), -tail, tail);
  return halley(x, halley(x, select(isBeyond, tail, y)));
}

static CallResults inverse(Call &call) {
  return widened(call, [](const Expr &given) {
    static constexpr double central[] = {
        2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
        -4.39150654e-06, 0.00021858087,  -0.00125372503,
        -0.00417768164,  0.246640727,    1.50140941};
    static constexpr double tail[] = {
        -0.000200214257, 0.000100950558, 0.00134934322,
        -0.00367342844,  0.00573950773,  -0.0076224613,
        0.00943887047,   1.00167406,     2.83297682};
    Expr size = abs(given), zero = given.like(0.0);
    Expr isInside = formula::isLess(size, 1);
    Expr x = select(isInside, given, zero);
    Expr w = -log1p(-(x * x));
    Expr isCentral = formula::isLess(w, 5);
    Expr five = w.like(5.0);
    Expr y =
        x * select(isCentral,
                   polynomial(select(isCentral, w, five) - 2.5, central),
                   polynomial(sqrt(select(isCentral, five, w)) - 3.0, tail));
    if (elementOf(x).isF64())
      y = refined(x, w, y);
    // At 1 and -1 it is infinite, and beyond there is none, as its derivative.
    using Limits = std::numeric_limits<double>;
    Expr factor = select(
        isEqual(size, 1.0), given.like(Limits::infinity()),
        select(isInside, given.like(1.0), given.like(Limits::quiet_NaN())));
    return select(isInside, y, given * factor);
  });
}

void tandem::addErrorFunctions(FunctionTable &table) {
  table.family("Math");
  table.add("erfc(x)", "1 - erf(x), with all its digits where that is small",
            complement);
  table.add("erfinv(x)", "the inverse of erf; infinite at 1 and -1, NaN beyond",
            inverse);
}
