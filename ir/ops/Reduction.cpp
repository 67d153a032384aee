//===- Reduction.cpp - combining along dimensions -------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Inference.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Generic.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Reduction.cpp.inc"

void TandemDialect::addReductionOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Reduction.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

#define TANDEM_REDUCTION(OP)                                                   \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *, std::optional<Location> loc, Adaptor adaptor,             \
      SmallVectorImpl<Type> &types) {                                          \
    return infer::inferReduced(loc, adaptor.getX().getType(),                  \
                               adaptor.getDims(), types);                      \
  }
TANDEM_REDUCTION(ReduceSumOp)
TANDEM_REDUCTION(ReduceProdOp)
TANDEM_REDUCTION(ReduceMaxOp)
TANDEM_REDUCTION(ReduceMinOp)
#undef TANDEM_REDUCTION

//===----------------------------------------------------------------------===//
// Combiners
//===----------------------------------------------------------------------===//

static Type elementOf(Value v) {
  return cast<RankedTensorType>(v.getType()).getElementType();
}

/// The least (sign -1) or greatest (+1) value of a type.
static TypedAttr extreme(Type element, bool greatest) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type,
                          APFloat::getInf(type.getFloatSemantics(), !greatest));
  unsigned bits = element.getIntOrFloatBitWidth();
  if (isUnsignedType(element))
    return IntegerAttr::get(element, greatest ? APInt::getMaxValue(bits)
                                              : APInt::getMinValue(bits));
  return IntegerAttr::get(element, greatest ? APInt::getSignedMaxValue(bits)
                                            : APInt::getSignedMinValue(bits));
}

TypedAttr ReduceSumOp::getNeutral() {
  return cast<TypedAttr>(Builder(getContext()).getZeroAttr(elementOf(getX())));
}
Value ReduceSumOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::add(b, loc, x, y);
}
double ReduceSumOp::referenceCombine(double x, double y) { return x + y; }

TypedAttr ReduceProdOp::getNeutral() {
  return cast<TypedAttr>(Builder(getContext()).getOneAttr(elementOf(getX())));
}
Value ReduceProdOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::mul(b, loc, x, y);
}
double ReduceProdOp::referenceCombine(double x, double y) { return x * y; }

TypedAttr ReduceMaxOp::getNeutral() {
  return extreme(elementOf(getX()), false);
}
Value ReduceMaxOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::maximum(b, loc, x, y);
}
double ReduceMaxOp::referenceCombine(double x, double y) {
  return std::isnan(x) || x > y ? x : y;
}

TypedAttr ReduceMinOp::getNeutral() { return extreme(elementOf(getX()), true); }
Value ReduceMinOp::emitCombine(OpBuilder &b, Location loc, Value x, Value y) {
  return scalar::minimum(b, loc, x, y);
}
double ReduceMinOp::referenceCombine(double x, double y) {
  return std::isnan(x) || x < y ? x : y;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult ReduceSumOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.dy().expandReduced(p.x().shape(), getDims()));
  return success();
}

/// The most factors of which the products of the others are computed one by
/// one.
static constexpr int64_t kFewFactors = 16;

/// For each element of the rows of `x` (of [rows, n]) the product of the row's
/// others.
static Expr productsOfOthers(const Expr &x) {
  int64_t rows = x.dim(0), n = x.dim(1);
  OpBuilder &b = *x.builder;
  auto type = RankedTensorType::get({rows, n, n}, b.getI32Type());
  auto index = [&](int64_t dim) {
    return x.wrap(IotaOp::create(b, x.loc, type, dim));
  };
  Expr factors = x.broadcastTo(type.getShape(), {0, 2});
  Expr isOwn = compare(ComparePredicate::eq, index(1), index(2));
  return select(isOwn, factors.like(1.0), factors).reduceProd({2});
}

/// For each element of the rows of `x` the product of the others, times the
/// row's `dy`. Of many elements by groups: the product of the others is that of
/// the other groups times that of the others of the group. There is no
/// division, which would be by 0.
static Expr timesOthers(const Expr &x, const Expr &dy) {
  int64_t rows = x.dim(0), n = x.dim(1);
  if (n == 1)
    return dy;
  if (n <= kFewFactors)
    return dy.broadcastTo(x.shape(), {0, 1}) * productsOfOthers(x);
  int64_t groups = llvm::divideCeil(n, kFewFactors);
  int64_t whole = groups * kFewFactors;
  Expr padded = x;
  if (whole > n) {
    auto one =
        cast<TypedAttr>(x.builder->getOneAttr(x.type().getElementType()));
    int64_t zeros[] = {0, 0}, high[] = {0, whole - n};
    padded =
        x.wrap(PadOp::create(*x.builder, x.loc, x, zeros, high, zeros, one));
  }
  Expr parts = padded.reshape({rows * groups, kFewFactors});
  Expr products = parts.reduceProd({1}).reshape({rows, groups});
  Expr dProducts = timesOthers(products, dy).reshape({rows * groups, 1});
  Expr dx = timesOthers(parts, dProducts).reshape({rows, whole});
  if (whole == n)
    return dx;
  int64_t from[] = {0, 0}, to[] = {rows, n}, steps[] = {1, 1};
  return x.wrap(SliceOp::create(*x.builder, x.loc, dx, from, to, steps));
}

LogicalResult ReduceProdOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  // [kept, reduced], in f32 at least: each product would be rounded.
  Type element = p.x().type().getElementType();
  Type compute = scalar::computeType(element);
  ArrayRef<int64_t> shape = p.x().shape();
  SmallVector<int64_t> order, moved;
  for (int64_t d = 0; d < p.x().rank(); ++d)
    if (!llvm::is_contained(getDims(), d))
      order.push_back(d);
  llvm::append_range(order, getDims());
  SmallVector<int64_t> back(order.size());
  for (auto [i, d] : llvm::enumerate(order)) {
    moved.push_back(shape[d]);
    back[d] = i;
  }
  int64_t rows = p.y().type().getNumElements();
  int64_t n = 1;
  for (int64_t d : getDims())
    n *= shape[d];
  Expr x = p.x().cast(compute).permute(order).reshape({rows, n});
  Expr dx = timesOthers(x, p.dy().cast(compute).reshape({rows, 1}));
  p.set(0, dx.reshape(moved).permute(back).cast(element));
  return success();
}

/// dy / (number of winners), at the winners.
static LogicalResult pullbackToWinners(Pullback &p, ArrayRef<int64_t> dims) {
  if (!p.needs(0))
    return success();
  ArrayRef<int64_t> shape = p.x().shape();
  Expr wins =
      compare(ComparePredicate::eq, p.x(), p.y().expandReduced(shape, dims))
          .cast(p.x().type().getElementType());
  Expr each = p.dy() / wins.reduceSum(dims);
  p.set(0, wins * each.expandReduced(shape, dims));
  return success();
}
LogicalResult ReduceMaxOp::pullback(Pullback &p) {
  return pullbackToWinners(p, getDims());
}
LogicalResult ReduceMinOp::pullback(Pullback &p) {
  return pullbackToWinners(p, getDims());
}
