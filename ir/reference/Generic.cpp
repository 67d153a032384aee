//===- Generic.cpp - evaluation that follows from an op's interfaces ------===//
#include "ir/reference/Generic.h"

#include "ir/Ops.h"
#include "ir/reference/Elements.h"
#include "ir/reference/Rounding.h"

#include "mlir/IR/AffineExpr.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

uint64_t reference::bitsOfInteger(double number) {
  double rest = std::fmod(number, 0x1p64);
  if (!(std::abs(rest) < 0x1p64))
    return 0;
  auto magnitude = static_cast<uint64_t>(std::abs(rest));
  return rest < 0 ? 0 - magnitude : magnitude;
}

/// The integer of `type` with these low bits.
static double integerOf(Type type, uint64_t bits) {
  APInt number(type.getIntOrFloatBitWidth(), bits, /*isSigned=*/false,
               /*implicitTrunc=*/true);
  return numberOf(type, number);
}

double reference::wrapped(Type type, double number) {
  if (!type.isInteger() || type.isInteger(1))
    return number;
  if (number >= 0 && number < std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1))
    return number;
  return integerOf(type, bitsOfInteger(number));
}

double reference::sum(Type type, double x, double y) {
  // A large operand may be one that was rounded to 2^63 or 2^64.
  double sum = x + y;
  return sum == x || sum == y ? sum : wrapped(type, sum);
}

double reference::product(Type type, double x, double y) {
  if (!type.isInteger())
    return x * y;
  // A double has not all digits.
  return integerOf(type, bitsOfInteger(x) * bitsOfInteger(y));
}

double reference::convert(Type from, Type to, double number) {
  if (to.isInteger(1))
    return number != 0;
  // What else is rounded is rounded where it is made (Rounding.h).
  if (!to.isInteger())
    return isNarrowFloat(to)
               ? roundedTo(cast<FloatType>(to).getFloatSemantics(), number)
               : number;
  if (from.isInteger())
    return wrapped(to, number);
  if (std::isnan(number))
    return 0;
  unsigned bits = to.getIntOrFloatBitWidth();
  bool none = isUnsignedType(to);
  double end = std::ldexp(1.0, none ? bits : bits - 1);
  double least = none ? 0.0 : -end;
  return std::clamp(std::trunc(number), least, bits == 64 ? end : end - 1);
}

void reference::evaluatePointwise(PointwiseOpInterface op, Inputs in,
                                  Outputs out) {
  SmallVector<double> x(in.size());
  auto element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool multiplies = isa<MulOp>(*op);
  // The others give numbers of the type.
  bool wraps = isa<AddOp, SubOp, NegOp, AbsOp>(*op);
  for (int64_t i = 0, n = out[0].size(); i < n; ++i) {
    for (auto [value, operand] : llvm::zip(x, in))
      value = (*operand)[i];
    double &y = out[0][i];
    y = multiplies ? product(element, x[0], x[1]) : op.referenceScalar(x);
    if (wraps && !llvm::is_contained(x, y))
      y = wrapped(element, y);
  }
}

/// Evaluates an affine expression without symbols.
static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), dims);
  int64_t rhs = evaluate(binary.getRHS(), dims);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return ((lhs % rhs) + rhs) % rhs;
  case AffineExprKind::FloorDiv:
    return lhs >= 0 ? lhs / rhs : -((-lhs + rhs - 1) / rhs);
  default:
    return lhs >= 0 ? (lhs + rhs - 1) / rhs : -(-lhs / rhs);
  }
}

static bool contains(IntegerSet set, ArrayRef<int64_t> index) {
  for (unsigned i = 0, n = set.getNumConstraints(); i < n; ++i) {
    int64_t value = evaluate(set.getConstraint(i), index);
    if (set.isEq(i) ? value != 0 : value < 0)
      return false;
  }
  return true;
}

static double toDouble(TypedAttr number) {
  if (auto value = dyn_cast<FloatAttr>(number))
    return value.getValueAsDouble();
  return numberOf(number.getType(), cast<IntegerAttr>(number).getValue());
}

namespace {

/// An affine expression of an index that is a sum: most of those of views are,
/// and are followed along a line instead of being computed at every element.
struct Sum {
  int64_t constant = 0;
  SmallVector<int64_t> factors; ///< one for each dim of the index

  int64_t at(ArrayRef<int64_t> index) const {
    int64_t sum = constant;
    for (auto [factor, i] : llvm::zip(factors, index))
      sum += factor * i;
    return sum;
  }
  /// What one step along the last dim adds.
  int64_t step() const { return factors.empty() ? 0 : factors.back(); }
};

} // namespace

/// Adds `times` times the expression to `sum`; false if it is no sum.
static bool addTo(Sum &sum, AffineExpr expr, int64_t times) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant += times * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    sum.factors[dim.getPosition()] += times;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  AffineExpr lhs = binary.getLHS(), rhs = binary.getRHS();
  if (binary.getKind() == AffineExprKind::Add)
    return addTo(sum, lhs, times) && addTo(sum, rhs, times);
  auto factor = dyn_cast<AffineConstantExpr>(rhs);
  return binary.getKind() == AffineExprKind::Mul && factor &&
         addTo(sum, lhs, times * factor.getValue());
}

/// The position in `source` that the map gives, as a sum.
static std::optional<Sum> positionIn(const Array &source, AffineMap map) {
  Sum sum;
  sum.factors.assign(map.getNumDims(), 0);
  int64_t stride = 1;
  for (int64_t d = source.rank() - 1; d >= 0; --d) {
    if (!addTo(sum, map.getResult(d), stride))
      return std::nullopt;
    stride *= source.dim(d);
  }
  return sum;
}

/// Calls `body` with the first index of every line along the last dim, and the
/// length of a line.
template <typename Body>
static void forEachLine(ArrayRef<int64_t> shape, Body body) {
  SmallVector<int64_t> lines(shape);
  int64_t length = 1;
  if (!lines.empty())
    std::swap(length, lines.back());
  if (length != 0)
    forEachIndex(lines, [&](ArrayRef<int64_t> index) { body(index, length); });
}

/// As evaluateView, where positions and constraints are sums; false elsewhere.
static bool followView(AffineMap map, IntegerSet domain, double fill,
                       const Array &in, Array &out) {
  std::optional<Sum> position = positionIn(in, map);
  if (!position)
    return false;
  SmallVector<Sum> constraints;
  for (AffineExpr constraint :
       domain ? domain.getConstraints() : ArrayRef<AffineExpr>()) {
    Sum &sum = constraints.emplace_back();
    sum.factors.assign(map.getNumDims(), 0);
    if (!addTo(sum, constraint, 1))
      return false;
  }
  SmallVector<int64_t> values(constraints.size());
  double *to = out.data.data();
  forEachLine(out.shape, [&](ArrayRef<int64_t> index, int64_t length) {
    int64_t from = position->at(index);
    for (auto [value, sum] : llvm::zip(values, constraints))
      value = sum.at(index);
    for (int64_t k = 0; k < length; ++k, from += position->step()) {
      bool isIn = true;
      for (auto [i, sum] : llvm::enumerate(constraints)) {
        isIn &= domain.isEq(i) ? values[i] == 0 : values[i] >= 0;
        values[i] += sum.step();
      }
      *to++ = isIn ? in[from] : fill;
    }
  });
  return true;
}

void reference::evaluateView(ViewOpInterface op, Inputs in, Outputs out) {
  if (out[0].size() == 0)
    return;
  // Both are row-major. (Its map divides, and is no sum.)
  if (isa<ReshapeOp>(*op)) {
    out[0].data = in[0]->data;
    return;
  }
  AffineMap map = op.getIndexMap();
  IntegerSet domain = op.getIndexDomain();
  double fill = op.getFill() ? toDouble(op.getFill()) : 0.0;
  if (followView(map, domain, fill, *in[0], out[0]))
    return;
  SmallVector<int64_t> source(map.getNumResults());
  int64_t position = 0;
  forEachIndex(out[0].shape, [&](ArrayRef<int64_t> index) {
    double &element = out[0][position++];
    if (domain && !contains(domain, index)) {
      element = fill;
      return;
    }
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      source[i] = evaluate(expr, index);
    element = (*in[0])(source);
  });
}

void reference::evaluateReduction(ReductionOpInterface op, Inputs in,
                                  Outputs out) {
  ArrayRef<int64_t> reduced = op.getReducedDims();
  llvm::fill(out[0].data, toDouble(op.getNeutral()));
  auto element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool multiplies = isa<ReduceProdOp>(*op);
  // Where an element goes: dims that are reduced do not count.
  Sum kept;
  kept.factors.assign(in[0]->rank(), 0);
  int64_t stride = 1;
  for (int64_t d = in[0]->rank() - 1; d >= 0; --d)
    if (!llvm::is_contained(reduced, d)) {
      kept.factors[d] = stride;
      stride *= in[0]->dim(d);
    }
  const double *from = in[0]->data.data();
  forEachLine(in[0]->shape, [&](ArrayRef<int64_t> index, int64_t length) {
    double *to = out[0].data.data() + kept.at(index);
    for (int64_t k = 0; k < length; ++k, to += kept.step()) {
      double x = *from++;
      double y =
          multiplies ? product(element, *to, x) : op.referenceCombine(*to, x);
      *to = y == x || y == *to ? y : wrapped(element, y);
    }
  });
}

double reference::bitcastElement(Type from, Type to, double number) {
  return from == to ? number : numberOfBits(to, bitsOf(from, number));
}
