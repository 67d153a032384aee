//===- Formula.cpp - formulas that functions share ------------------------===//
#include "compiler/functions/Formula.h"
#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

template <typename Op> static Expr unary(const Expr &x) {
  return x.wrap(Op::create(*x.builder, x.loc, x.value));
}

Expr formula::isGreater(const Expr &x, double bound) {
  return compare(ComparePredicate::gt, x, x.like(bound));
}
Expr formula::isLess(const Expr &x, double bound) {
  return compare(ComparePredicate::lt, x, x.like(bound));
}
Expr formula::equals(const Expr &x, const Expr &y) {
  return compare(ComparePredicate::eq, x, y);
}
Expr formula::relu(const Expr &x) { return unary<ReluOp>(x); }

// x or 0, whichever is larger, and log(1 + exp(-|x|)). Written by one choice of
// sign, so that the gradient at 0 is that of the whole.
Expr formula::softplus(const Expr &x) {
  Expr negative = isLess(x, 0), zero = x.like(0);
  return select(negative, zero, x) + log1p(exp(select(negative, x, -x)));
}

Expr formula::clamp(const Expr &x, const Expr &low, const Expr &high) {
  Expr y = x;
  if (low)
    y = select(compare(ComparePredicate::lt, y, low), low, y);
  if (high)
    y = select(compare(ComparePredicate::gt, y, high), high, y);
  return y;
}

Expr formula::power(const Expr &x, double exponent) {
  if (exponent == 0.5)
    return sqrt(x);
  if (exponent == 0.75)
    return sqrt(x) * sqrt(sqrt(x));
  if (exponent == std::floor(exponent) && exponent >= 1 && exponent <= 4) {
    Expr y = x;
    for (int i = 1; i < exponent; ++i)
      y = y * x;
    return y;
  }
  return pow(x, x.like(exponent));
}

// 1 in the place of 0 keeps the root's gradient finite where it is not used.
Expr formula::root(const Expr &sum, double p) {
  Expr isZero = equals(sum, sum.like(0));
  return select(isZero, sum.like(0),
                power(select(isZero, sum.like(1), sum), 1 / p));
}

Expr formula::normOver(const Expr &x, double p, ArrayRef<int64_t> dims) {
  Expr size = abs(x);
  if (p == 1)
    return size.reduceSum(dims);
  if (std::isinf(p))
    return size.reduceMax(dims);
  return root(power(p == 2 ? x : size, p).reduceSum(dims), p);
}

Expr formula::mean(const Expr &x, ArrayRef<int64_t> dims) {
  return composite::reduceMean(x, dims);
}

Expr formula::wide(Call &call, size_t i, Type type) {
  if (!call.has(i))
    return {};
  return composite::in(call.builder, call.loc, call.value(i), type);
}

StringRef formula::reduction(Call &call) {
  return call.text("reduction", "mean", {"mean", "sum", "none"});
}

Expr formula::reduced(Call &call, const Expr &loss) {
  StringRef how = reduction(call);
  SmallVector<int64_t> dims = dimsUpTo(loss.rank());
  if (how == "none")
    return loss;
  return how == "sum" ? loss.reduceSum(dims) : mean(loss, dims);
}
