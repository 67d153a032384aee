//===- Policy.cpp - which ops mixed precision computes in which type ------===//
#include "passes/precision/Policy.h"

#include "ir/Autocast.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tandem;

AutocastClass tandem::autocastClassOf(Operation *op) {
  if (op->hasTrait<AutocastLow>())
    return AutocastClass::Low;
  return op->hasTrait<AutocastFull>() ? AutocastClass::Full
                                      : AutocastClass::Follows;
}

bool tandem::hasChoice(Operation *op) {
  auto isFloat = [](Value value) {
    Type element = elementOf(value);
    return element && isMixable(element);
  };
  return isa_and_nonnull<TandemDialect>(op->getDialect()) &&
         !isa<CastOp, GradOp>(op) && !op->hasTrait<OpTrait::ConstantLike>() &&
         op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
         isMemoryEffectFree(op) && llvm::any_of(op->getOperands(), isFloat);
}

/// True if `value` is no infinity in `type` that it was not.
static bool fits(APFloat value, Type type) {
  if (!value.isFinite())
    return true;
  bool lost = false;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &lost);
  return value.isFinite();
}

/// True if `value` decides nothing: a parameter, or one number, seen through
/// views.
static bool adapts(Value value, Type type) {
  while (auto view = value.getDefiningOp<ViewOpInterface>()) {
    if (view.getFill())
      return false;
    value = view->getOperand(0);
  }
  if (auto constant = value.getDefiningOp<ConstantOp>()) {
    auto number = dyn_cast_or_null<FloatAttr>(constant.getSplat());
    return number && fits(number.getValue(), type);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument
                  ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
                  : func::FuncOp();
  if (!func)
    return false;
  RoleAttr role = roleOfArgument(func, argument.getArgNumber());
  return role && role.getKind() == RoleKind::Param;
}

static bool statesPrecision(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<MatmulOp, Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp>(
          [](auto product) { return product.getPrecision().has_value(); })
      .Default(false);
}

TypeChoice tandem::chooseType(const Retyper &retyper, Operation *op, Type low) {
  if (statesPrecision(op))
    return {{}, "its precision is stated"};
  switch (autocastClassOf(op)) {
  case AutocastClass::Full:
    return {{}, "keeps the digits of f32"};
  case AutocastClass::Low:
    return {low, "products are low"};
  case AutocastClass::Follows:
    break;
  }
  bool isLow = false;
  for (Value operand : op->getOperands()) {
    Type element = elementOf(operand);
    if (!element || element == low || !isMixable(element))
      continue;
    if (retyper.computedIn(operand, low))
      isLow = true;
    else if (!adapts(operand, low))
      return {{}, "reads what is not low"};
  }
  if (isLow)
    return {low, "reads what is low"};
  return {{}, "reads nothing low"};
}
