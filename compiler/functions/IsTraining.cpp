//===- IsTraining.cpp - whether a program trains --------------------------===//
#include "compiler/functions/IsTraining.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

// A dropout that drops everything draws nothing, so that its state is none.
Expr tandem::isTraining(OpBuilder &builder, Location loc) {
  Type f32 = builder.getF32Type(), i64 = builder.getI64Type();
  auto scalar = RankedTensorType::get({}, f32);
  Value one = ConstantOp::splat(builder, loc, scalar, 1);
  Value state =
      ConstantOp::splat(builder, loc, RankedTensorType::get({2}, i64), 0);
  Expr kept(builder, loc,
            DropoutOp::create(
                builder, loc, scalar, one, state, builder.getI64IntegerAttr(0),
                builder.getF64FloatAttr(1), builder.getUnitAttr()));
  return compare(ComparePredicate::eq, kept, kept.like(0));
}
