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
#define TANDEM_UNARY(FUNCTION, OP, MNEMONIC)                                   \
  Expr tandem::FUNCTION(const Expr &x) { return unary<OP>(x); }
#define TANDEM_BINARY(FUNCTION, OP, MNEMONIC)                                  \
  Expr tandem::FUNCTION(const Expr &x, const Expr &y) {                        \
    return binary<OP>(x, y);                                                   \
  }
#include "ir/ops/PointwiseFunctions.h.inc"

Expr tandem::detach(const Expr &x) { return unary<DetachOp>(x); }
Expr tandem::compare(ComparePredicate predicate, const Expr &a, const Expr &b) {
  return a.wrap(CompareOp::create(*a.builder, a.loc, predicate, a, b));
}
Expr tandem::select(const Expr &condition, const Expr &a, const Expr &b) {
  return a.wrap(SelectOp::create(*a.builder, a.loc, condition, a, b));
}
