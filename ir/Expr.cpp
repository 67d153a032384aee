//===- Expr.cpp - arithmetic on tensor values -----------------------------===//
#include "ir/Expr.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

Expr Expr::like(double number) const {
  return wrap(ConstantOp::splat(*builder, loc, type(), number));
}

Expr Expr::cast(Type elementType) const {
  if (type().getElementType() == elementType)
    return *this;
  return wrap(CastOp::create(*builder, loc, type().clone(elementType), value));
}

Expr Expr::broadcastTo(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) const {
  if (type().getShape() == shape)
    return *this;
  return wrap(BroadcastOp::create(*builder, loc, value, shape, dims));
}

Expr Expr::expandReduced(ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> dims) const {
  SmallVector<int64_t> kept;
  for (int64_t d = 0, n = shape.size(); d < n; ++d)
    if (!llvm::is_contained(dims, d))
      kept.push_back(d);
  return broadcastTo(shape, kept);
}

Expr Expr::reshape(ArrayRef<int64_t> shape) const {
  if (type().getShape() == shape)
    return *this;
  return wrap(ReshapeOp::create(*builder, loc, value, shape));
}

Expr Expr::permute(ArrayRef<int64_t> permutation) const {
  return wrap(PermuteOp::create(*builder, loc, value, permutation));
}

Expr Expr::reduceSum(ArrayRef<int64_t> dims) const {
  if (dims.empty())
    return *this;
  return wrap(ReduceSumOp::create(*builder, loc, value, dims));
}

Expr Expr::reduceMax(ArrayRef<int64_t> dims) const {
  if (dims.empty())
    return *this;
  return wrap(ReduceMaxOp::create(*builder, loc, value, dims));
}

Expr Expr::reduceProd(ArrayRef<int64_t> dims) const {
  if (dims.empty())
    return *this;
  return wrap(ReduceProdOp::create(*builder, loc, value, dims));
}

Expr Expr::reverse(ArrayRef<int64_t> dims) const {
  if (dims.empty())
    return *this;
  return wrap(ReverseOp::create(*builder, loc, value, dims));
}

template <typename Op> static Expr binary(const Expr &a, const Expr &b) {
  return a.wrap(Op::create(*a.builder, a.loc, a.value, b.value));
}
template <typename Op> static Expr unary(const Expr &x) {
  return x.wrap(Op::create(*x.builder, x.loc, x.value));
}

#define TANDEM_BINARY(SYMBOL, OP)                                              \
  Expr tandem::operator SYMBOL(const Expr &a, const Expr &b) {                 \
    return binary<OP>(a, b);                                                   \
  }                                                                            \
  Expr tandem::operator SYMBOL(const Expr &a, double b) {                      \
    return binary<OP>(a, a.like(b));                                           \
  }                                                                            \
  Expr tandem::operator SYMBOL(double a, const Expr &b) {                      \
    return binary<OP>(b.like(a), b);                                           \
  }
TANDEM_BINARY(+, AddOp)
TANDEM_BINARY(-, SubOp)
TANDEM_BINARY(*, MulOp)
TANDEM_BINARY(/, DivOp)
#undef TANDEM_BINARY

Expr tandem::operator-(const Expr &a) { return unary<NegOp>(a); }
Expr tandem::exp(const Expr &x) { return unary<ExpOp>(x); }
Expr tandem::log(const Expr &x) { return unary<LogOp>(x); }
Expr tandem::sqrt(const Expr &x) { return unary<SqrtOp>(x); }
Expr tandem::rsqrt(const Expr &x) { return unary<RsqrtOp>(x); }
Expr tandem::sin(const Expr &x) { return unary<SinOp>(x); }
Expr tandem::cos(const Expr &x) { return unary<CosOp>(x); }
Expr tandem::tanh(const Expr &x) { return unary<TanhOp>(x); }
Expr tandem::erf(const Expr &x) { return unary<ErfOp>(x); }
Expr tandem::expm1(const Expr &x) { return unary<Expm1Op>(x); }
Expr tandem::log1p(const Expr &x) { return unary<Log1pOp>(x); }
Expr tandem::tan(const Expr &x) { return unary<TanOp>(x); }
Expr tandem::asin(const Expr &x) { return unary<AsinOp>(x); }
Expr tandem::acos(const Expr &x) { return unary<AcosOp>(x); }
Expr tandem::atan(const Expr &x) { return unary<AtanOp>(x); }
Expr tandem::sinh(const Expr &x) { return unary<SinhOp>(x); }
Expr tandem::cosh(const Expr &x) { return unary<CoshOp>(x); }
Expr tandem::abs(const Expr &x) { return unary<AbsOp>(x); }
Expr tandem::floor(const Expr &x) { return unary<FloorOp>(x); }
Expr tandem::ceil(const Expr &x) { return unary<CeilOp>(x); }
Expr tandem::round(const Expr &x) { return unary<RoundOp>(x); }
Expr tandem::trunc(const Expr &x) { return unary<TruncOp>(x); }
Expr tandem::sign(const Expr &x) { return unary<SignOp>(x); }
Expr tandem::sigmoid(const Expr &x) { return unary<SigmoidOp>(x); }
Expr tandem::pow(const Expr &x, const Expr &y) { return binary<PowOp>(x, y); }
Expr tandem::atan2(const Expr &y, const Expr &x) {
  return binary<Atan2Op>(y, x);
}
Expr tandem::rem(const Expr &x, const Expr &y) { return binary<RemOp>(x, y); }
Expr tandem::maximum(const Expr &x, const Expr &y) {
  return binary<MaximumOp>(x, y);
}
Expr tandem::minimum(const Expr &x, const Expr &y) {
  return binary<MinimumOp>(x, y);
}
Expr tandem::detach(const Expr &x) { return unary<DetachOp>(x); }
Expr tandem::logicalAnd(const Expr &x, const Expr &y) {
  return binary<LogicalAndOp>(x, y);
}
Expr tandem::logicalOr(const Expr &x, const Expr &y) {
  return binary<LogicalOrOp>(x, y);
}
Expr tandem::logicalNot(const Expr &x) { return unary<LogicalNotOp>(x); }
Expr tandem::compare(ComparePredicate predicate, const Expr &a, const Expr &b) {
  return a.wrap(CompareOp::create(*a.builder, a.loc, predicate, a, b));
}
Expr tandem::select(const Expr &condition, const Expr &a, const Expr &b) {
  return a.wrap(SelectOp::create(*a.builder, a.loc, condition, a, b));
}
