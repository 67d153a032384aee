//===- Generic.cpp - evaluation that follows from an op's interfaces ------===//
#include "ir/reference/Generic.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

void reference::evaluatePointwise(PointwiseOpInterface op, Inputs in,
                                  Outputs out) {
  SmallVector<double> x(in.size());
  for (int64_t i = 0, n = out[0].size(); i < n; ++i) {
    for (auto [value, operand] : llvm::zip(x, in))
      value = (*operand)[i];
    out[0][i] = op.referenceScalar(x);
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
  auto integer = cast<IntegerAttr>(number).getValue();
  return integer.getBitWidth() == 1
             ? static_cast<double>(integer.getZExtValue())
             : static_cast<double>(integer.getSExtValue());
}

void reference::evaluateView(ViewOpInterface op, Inputs in, Outputs out) {
  AffineMap map = op.getIndexMap();
  IntegerSet domain = op.getIndexDomain();
  double fill = op.getFill() ? toDouble(op.getFill()) : 0.0;
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
  SmallVector<int64_t> kept;
  int64_t position = 0;
  forEachIndex(in[0]->shape, [&](ArrayRef<int64_t> index) {
    kept.clear();
    for (auto [d, i] : llvm::enumerate(index))
      if (!llvm::is_contained(reduced, static_cast<int64_t>(d)))
        kept.push_back(i);
    double &sum = out[0](kept);
    sum = op.referenceCombine(sum, (*in[0])[position++]);
  });
}

/// The bits of a number that an element type holds, as that type has them.
static APInt bitsOf(Type element, double number) {
  if (auto type = dyn_cast<FloatType>(element)) {
    APFloat value(number);
    bool lost;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &lost);
    return value.bitcastToAPInt();
  }
  return APInt(element.getIntOrFloatBitWidth(), static_cast<int64_t>(number),
               /*isSigned=*/true, /*implicitTrunc=*/true);
}

double reference::bitcastElement(Type from, Type to, double number) {
  if (from == to)
    return number;
  APInt bits = bitsOf(from, number);
  auto type = dyn_cast<FloatType>(to);
  if (!type)
    return static_cast<double>(bits.getSExtValue());
  APFloat value(type.getFloatSemantics(), bits);
  bool lost;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}
