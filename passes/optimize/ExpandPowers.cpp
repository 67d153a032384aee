//===- ExpandPowers.cpp - powers with a constant exponent -----------------===//
//
// A power in general is a logarithm and an exponential. The exponents of models
// ask for a few products or a root: the cube of an exported gelu, the square
// and the inverse root of a norm, and what their gradients make of them.
//
// Values of f32 and f64 may differ from a power's in the last bits, and those
// that are no numbers or infinite are a power's. Narrower types are computed in
// f32 and rounded once, as a power of theirs is.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/optimize/ReplaceTagged.h"

#include "ir/Ops.h"

#include <cmath>
#include <limits>

namespace tandem {
#define GEN_PASS_DEF_EXPANDPOWERS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The number that all elements of `value` are, if it follows from constants.
static std::optional<double> splatOf(Value value, int depth = 8) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    TypedAttr splat = constant.getSplat();
    if (auto number = dyn_cast_or_null<FloatAttr>(splat))
      return number.getValueAsDouble();
    if (auto number = dyn_cast_or_null<IntegerAttr>(splat))
      if (number.getType().isSignlessInteger())
        return static_cast<double>(number.getInt());
    return std::nullopt;
  }
  if (auto view = dyn_cast<ViewOpInterface>(op))
    return view.getFill() ? std::nullopt
                          : splatOf(op->getOperand(0), depth - 1);
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  if (!pointwise)
    return std::nullopt;
  SmallVector<double> operands;
  for (Value operand : op->getOperands()) {
    std::optional<double> splat = splatOf(operand, depth - 1);
    if (!splat)
      return std::nullopt;
    operands.push_back(*splat);
  }
  return pointwise.referenceScalar(operands);
}

/// `x` to the power of 1 to 4.
static Expr repeated(const Expr &x, int64_t times) {
  if (times == 4)
    return (x * x) * (x * x);
  Expr y = x;
  for (int64_t i = 1; i < times; ++i)
    y = y * x;
  return y;
}

/// `x` to the power of an odd multiple of a half. sqrt gives -0 of -0 and NaN
/// of -infinity, where the power is 0 and infinity.
static Expr ofRoot(const Expr &x, double exponent) {
  const double infinity = std::numeric_limits<double>::infinity();
  Expr isLeast = compare(ComparePredicate::eq, x, x.like(-infinity));
  if (exponent > 0) {
    Expr root = select(isLeast, x.like(infinity), abs(sqrt(x)));
    return exponent < 1 ? root : abs(x) * root;
  }
  Expr root = select(isLeast, x.like(0.0), abs(rsqrt(x)));
  return exponent > -1 ? root : repeated(root, 3);
}

/// The power, or none if nothing is simpler.
static Expr expanded(const Expr &x, double exponent) {
  bool isFloat = isa<FloatType>(x.type().getElementType());
  if (exponent == 0)
    return x.like(1.0);
  if (exponent >= 1 && exponent <= 4 && exponent == std::trunc(exponent))
    return repeated(x, static_cast<int64_t>(exponent));
  if (!isFloat)
    return {};
  if (exponent == -1 || exponent == -2 || exponent == -3)
    return repeated(1.0 / x, static_cast<int64_t>(-exponent));
  if (std::abs(exponent) == 0.5 || std::abs(exponent) == 1.5)
    return ofRoot(x, exponent);
  return {};
}

namespace {

struct ExpandPowers : tandem::impl::ExpandPowersBase<ExpandPowers> {
  void runOnOperation() final {
    SmallVector<PowOp> powers;
    getOperation().walk([&](PowOp op) { powers.push_back(op); });
    for (PowOp op : powers)
      expand(op);
  }

  void expand(PowOp op) {
    std::optional<double> exponent = splatOf(op.getRhs());
    if (!exponent)
      return;
    expandedPowers += replaceTagged(op, [&](OpBuilder &builder) {
      Expr x(builder, op.getLoc(), op.getLhs());
      Type element = x.type().getElementType();
      bool isNarrow =
          isa<FloatType>(element) && !element.isF32() && !element.isF64();
      Expr y = expanded(isNarrow ? x.cast(builder.getF32Type()) : x, *exponent);
      return y ? y.cast(element) : y;
    });
  }
};

} // namespace
