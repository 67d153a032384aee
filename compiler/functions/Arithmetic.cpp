//===- Arithmetic.cpp - functions of several numbers, broadcast -----------===//
//
// Operands have one element type and are stretched to one shape, as NumPy does
// it. Gradients at ties and bounds are PyTorch's.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "ir/Ops.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// `formula` of two operands that are numbers; floats in the compute type.
template <typename Formula>
static CallResults ofTwo(Call &call, Formula formula) {
  SmallVector<Expr> x = stretchedOperands(call);
  if (x.empty())
    return failure();
  if (isBool(x[0]))
    return call.fail("expected operands to have numbers, but got bools");
  Type type = elementOf(x[0]);
  if (isFloat(x[0]))
    for (Expr &value : x)
      value = wide(value);
  Expr y = formula(x[0], x[1]);
  if (!y)
    return failure();
  return results({y.cast(type)});
}

/// The same of floats.
template <typename Formula>
static CallResults ofTwoFloats(Call &call, Formula formula) {
  if (failed(call.expectFloat(0)))
    return failure();
  return ofTwo(call, formula);
}

static CallResults subtract(Call &call) {
  double alpha = numberOf(call, "alpha", 1.0, call[0]);
  return ofTwo(call, [&](const Expr &x, const Expr &y) {
    return alpha == 1 ? x - y : x - y * alpha;
  });
}

static CallResults addScaled(Call &call) {
  double alpha = numberOf(call, "alpha", 1.0, call[0]);
  return ofTwo(call, [&](const Expr &x, const Expr &y) {
    return alpha == 1 ? x + y : x + y * alpha;
  });
}

static CallResults multiply(Call &call) {
  return ofTwo(call, [](const Expr &x, const Expr &y) { return x * y; });
}

//===----------------------------------------------------------------------===//
// Quotients and remainders
//===----------------------------------------------------------------------===//

/// Where `r`, of the sign of a dividend, is not of the divisor's sign.
static Expr signsDiffer(const Expr &r, const Expr &y) {
  Expr differ = compare(ComparePredicate::ne, isLess(r, 0.0), isLess(y, 0.0));
  return logicalAnd(compare(ComparePredicate::ne, r, r.like(0.0)), differ);
}

static CallResults fmodFunction(Call &call) {
  return ofTwo(call, [&](const Expr &x, const Expr &y) {
    return call.op("rem", {x.value, y.value});
  });
}

static CallResults remainderFunction(Call &call) {
  return ofTwo(call, [&](const Expr &x, const Expr &y) {
    Expr r = call.op("rem", {x.value, y.value});
    return r ? r + select(signsDiffer(r, y), y, y.like(0.0)) : r;
  });
}

/// floor(x / y), of floats through the remainder, as Python does it: the
/// quotient itself may be rounded up to the next integer.
static Expr floorQuotient(Call &call, const Expr &x, const Expr &y) {
  Expr r = call.op("rem", {x.value, y.value});
  if (!r)
    return r;
  Expr differ = signsDiffer(r, y);
  if (!isFloat(x)) {
    Expr q = call.op("idiv", {x.value, y.value});
    return q ? q - select(differ, q.like(1), q.like(0)) : q;
  }
  Expr q = (x - r) / y - select(differ, r.like(1.0), r.like(0.0));
  Expr whole = call.op("floor", q.value);
  Expr more = compare(ComparePredicate::gt, q - whole, q.like(0.5));
  whole = whole + select(more, q.like(1.0), q.like(0.0));
  return detach(select(isEqual(y, 0.0), x / y, whole));
}

static CallResults floorDivide(Call &call) {
  return ofTwo(call, [&](const Expr &x, const Expr &y) {
    return floorQuotient(call, x, y);
  });
}

static CallResults divide(Call &call) {
  StringRef mode =
      call.text("rounding_mode", "none", {"none", "trunc", "floor"});
  if (!isFloat(call[0]) && mode == "none")
    return call.fail("expected operands to have floats, or 'rounding_mode' to "
                     "be 'trunc' or 'floor'");
  return ofTwo(call, [&](const Expr &x, const Expr &y) -> Expr {
    if (mode == "none")
      return x / y;
    if (mode == "floor")
      return floorQuotient(call, x, y);
    if (!isFloat(x))
      return call.op("idiv", {x.value, y.value});
    Expr q = x / y;
    return call.op("trunc", q.value);
  });
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

static CallResults power(Call &call) {
  return ofTwo(call, [](const Expr &x, const Expr &y) { return pow(x, y); });
}

//===----------------------------------------------------------------------===//
// Sums of exponentials, extremes
//===----------------------------------------------------------------------===//

static CallResults logAddExp(Call &call) {
  return ofTwoFloats(call, [&](const Expr &x, const Expr &y) {
    // Equal ones may be infinite, and their difference is no number.
    Expr difference = select(isEqual(x, y), x.like(0.0), x - y);
    Expr small = exp(-absolute(call, difference));
    return maximum(x, y) + x.wrap(Log1pOp::create(*x.builder, x.loc, small));
  });
}

/// `x` or `y`, where one is NaN the other; of equal ones each has half of the
/// gradient.
static CallResults extreme(Call &call, StringRef op, ComparePredicate wins) {
  return ofTwo(call, [&](const Expr &x, const Expr &y) {
    if (!isFloat(x))
      return call.op(op, {x.value, y.value});
    Expr one = select(logicalOr(compare(wins, x, y), isNaN(y)), x, y);
    Expr both = call.op(op, {x.value, y.value});
    return select(compare(ComparePredicate::eq, x, y), both, one);
  });
}
static CallResults fmaxFunction(Call &call) {
  return extreme(call, "maximum", ComparePredicate::gt);
}
static CallResults fminFunction(Call &call) {
  return extreme(call, "minimum", ComparePredicate::lt);
}

//===----------------------------------------------------------------------===//
// Of three
//===----------------------------------------------------------------------===//

/// `formula` of floats, stretched, in the compute type.
template <typename Formula>
static CallResults ofFloats(Call &call, Formula formula) {
  if (failed(call.expectFloat(0)))
    return failure();
  SmallVector<Expr> x = stretchedOperands(call);
  if (x.empty())
    return failure();
  Type type = elementOf(x[0]);
  for (Expr &value : x)
    value = wide(value);
  return results({formula(x).cast(type)});
}

static CallResults lerp(Call &call) {
  if (call.size() > 2 && call.hasAttribute("weight"))
    return call.fail("expected 'weight' as an operand or an attribute, but got "
                     "both");
  double number = call.number("weight", 0.5);
  return ofFloats(call, [&](ArrayRef<Expr> x) {
    Expr w = x.size() > 2 ? x[2] : x[0].like(number);
    Expr difference = x[1] - x[0];
    // Exact at both ends.
    return select(isLess(w, 0.5), x[0] + w * difference,
                  x[1] - difference * (1.0 - w));
  });
}

static CallResults addcmul(Call &call) {
  double value = call.number("value", 1.0);
  return ofFloats(
      call, [&](ArrayRef<Expr> x) { return x[0] + value * (x[1] * x[2]); });
}

static CallResults addcdiv(Call &call) {
  double value = call.number("value", 1.0);
  return ofFloats(
      call, [&](ArrayRef<Expr> x) { return x[0] + value * (x[1] / x[2]); });
}

static CallResults xlogy(Call &call) {
  return ofTwoFloats(call, [&](const Expr &x, const Expr &y) {
    // 0 whatever log y is; where that is a number it is the gradient for x.
    Expr nothing = logicalAnd(isEqual(x, 0.0),
                              compare(ComparePredicate::le, y, y.like(0.0)));
    Expr infinite = logicalAnd(isEqual(x, 0.0), isEqual(y, kInfinity));
    nothing = logicalOr(nothing, infinite);
    Expr product = x * log(select(nothing, y.like(1.0), y));
    return select(nothing, x.like(0.0), product);
  });
}

static CallResults hypot(Call &call) {
  return ofTwoFloats(call, [&](const Expr &x, const Expr &y) {
    // Scaled by the larger, so that no square overflows.
    Expr sizeX = absolute(call, x), sizeY = absolute(call, y);
    Expr largest = detach(maximum(sizeX, sizeY));
    // Beside NaN, too.
    Expr infinite = logicalOr(isEqual(detach(sizeX), kInfinity),
                              isEqual(detach(sizeY), kInfinity));
    Expr scale = replaced(select(infinite, largest.like(1.0), largest), 0, 1);
    Expr a = x / scale, b = y / scale;
    return select(infinite, x.like(kInfinity),
                  scale * rootOrZero(a * a + b * b));
  });
}

void tandem::addArithmeticFunctions(FunctionTable &table) {
  table.family("Arithmetic");
  table.add("add_scaled(x, y; alpha=1.0)", "x + alpha y, broadcast", addScaled);
  table.add("subtract(x, y; alpha=1.0)", "x - alpha y, broadcast", subtract);
  table.add("multiply(x, y)", "x y, broadcast", multiply);
  table.add("divide(x, y; rounding_mode='none')",
            "x / y, broadcast; rounded with 'trunc' or 'floor'", divide);
  table.add("floor_divide(x, y)", "floor(x / y), broadcast", floorDivide);
  table.add("fmod(x, y)", "x - y trunc(x / y), broadcast: of the sign of x",
            fmodFunction);
  table.add("remainder(x, y)",
            "x - y floor(x / y), broadcast: of the sign of y",
            remainderFunction);
  table.add("power(x, y)", "x to the power of y, broadcast; integers too",
            power);
  table.add("logaddexp(x, y)", "log(exp x + exp y), broadcast", logAddExp);
  table.add("xlogy(x, y)", "x log y, and 0 where x is 0; broadcast", xlogy);
  table.add("hypot(x, y)", "sqrt(x x + y y), broadcast", hypot);
  table.add("fmax(x, y)", "the larger, and what is not NaN; broadcast",
            fmaxFunction);
  table.add("fmin(x, y)", "the smaller, and what is not NaN; broadcast",
            fminFunction);
  table.add("lerp(start, end, weight?; weight=0.5)",
            "start + weight (end - start), broadcast", lerp);
  table.add("addcmul(x, a, b; value=1.0)", "x + value a b, broadcast", addcmul);
  table.add("addcdiv(x, a, b; value=1.0)", "x + value a / b, broadcast",
            addcdiv);
}
