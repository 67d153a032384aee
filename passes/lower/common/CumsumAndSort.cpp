//===- CumsumAndSort.cpp - what targets share of sums and order of lines --===//
#include "passes/lower/common/CumsumAndSort.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;

Type lower::lineSumType(Type compute) {
  return isa<FloatType>(compute) ? Float64Type::get(compute.getContext())
                                 : compute;
}

Value lower::standsBefore(Code &code, SortOp op, Value x, Value y) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  if (op.getDescending())
    std::swap(x, y);
  Value less = scalar::compare(b, loc, ComparePredicate::lt, x, y);
  if (!isa<FloatType>(x.getType()))
    return less;
  Value isNumber =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, x, x);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, y, y);
  return arith::OrIOp::create(b, loc, less, code.both(isNumber, isNaN));
}
