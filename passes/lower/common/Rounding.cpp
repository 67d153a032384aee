//===- Rounding.cpp - numbers of f16 and bf16 in registers of f32 ---------===//
#include "passes/lower/common/Rounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tandem;

/// The steps of code that are looked at to find that a number needs no
/// rounding; chains of exact ops are short.
static constexpr int kDepth = 8;

static bool isNumberOf(Value x, FloatType type, int depth);

static bool areNumbersOf(ValueRange values, FloatType type, int depth) {
  return llvm::all_of(values,
                      [&](Value x) { return isNumberOf(x, type, depth); });
}

/// Whether the code that makes `x` gives numbers of `type` alone.
static bool isNumberOf(Value x, FloatType type, int depth) {
  Operation *op = x.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (auto wide = dyn_cast<arith::ExtFOp>(op))
    return wide.getIn().getType() == type;
  APFloat number(0.0f);
  if (matchPattern(x, m_ConstantFloat(&number))) {
    bool lost = false;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &lost);
    return !lost;
  }
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return areNumbersOf({choice.getTrueValue(), choice.getFalseValue()}, type,
                        depth - 1);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned i = cast<OpResult>(x).getResultNumber();
    return areNumbersOf(
        {branch.thenYield().getOperand(i), branch.elseYield().getOperand(i)},
        type, depth - 1);
  }
  // Between two neighbours of a type that are no integers there is none.
  if (isa<arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, math::AbsFOp,
          math::FloorOp, math::CeilOp, math::RoundEvenOp, math::TruncOp>(op))
    return areNumbersOf(op->getOperands(), type, depth - 1);
  return false;
}

Value lower::narrowed(OpBuilder &b, Location loc, Value x, Type element) {
  if (x.getType() == element)
    return x;
  if (auto wide = x.getDefiningOp<arith::ExtFOp>())
    if (wide.getIn().getType() == element)
      return wide.getIn();
  return arith::TruncFOp::create(b, loc, element, x);
}

Value lower::rounded(OpBuilder &b, Location loc, Value x, Type element) {
  if (!element.isF16() && !element.isBF16())
    return x;
  if (isNumberOf(x, cast<FloatType>(element), kDepth))
    return x;
  Value narrow = arith::TruncFOp::create(b, loc, element, x);
  return arith::ExtFOp::create(b, loc, x.getType(), narrow);
}
