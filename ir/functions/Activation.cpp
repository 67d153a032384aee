//===- Activation.cpp - activation functions ------------------------------===//
//
// Computed in f32 at least, and rounded once to the type of the operand.
//
//===----------------------------------------------------------------------===//
#include "ir/functions/Function.h"
#include "ir/ops/Composite.h"

using namespace mlir;
using namespace tandem;

/// `formula` of operand 0, which must have floats, in the compute type.
template <typename Formula>
static CallResults widened(Call &call, Formula formula) {
  if (failed(call.expectFloat(0)))
    return failure();
  Value x = call.value(0);
  Expr wide =
      composite::in(call.builder, call.loc, x, composite::computeType(x));
  return SmallVector<Value>{formula(wide).cast(getElementTypeOrSelf(x))};
}

static Expr isPositive(const Expr &x) {
  return compare(ComparePredicate::gt, x, x.like(0.0));
}

static CallResults leakyRelu(Call &call) {
  double slope = call.number("negative_slope", 0.01);
  return widened(
      call, [&](const Expr &x) { return select(isPositive(x), x, x * slope); });
}

void tandem::addActivationFunctions(FunctionTable &table) {
  table.family("Activation");
  table.add("leaky_relu(x; negative_slope=0.01)",
            "x where x > 0, else negative_slope x", leakyRelu);
}
