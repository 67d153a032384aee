//===- ElementEmitter.cpp - scalar code of one element of a value ---------===//
#include "passes/lower/common/ElementEmitter.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/Polynomials.h"
#include "passes/lower/common/Rounding.h"
#include "passes/target/Target.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

static Value indexConstant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// Of numbers that were broadcast along new dimensions, what they were.
static Value beforeBroadcasts(Value tensor) {
  while (auto broadcast = tensor.getDefiningOp<BroadcastOp>())
    tensor = broadcast->getOperand(0);
  return tensor;
}

/// Whether `op` is e^(x - the greatest x), a weight of a softmax: the greatest
/// of them is 1, beside which a denormal one is nothing.
static bool isWeight(Operation *op) {
  auto distance =
      isa<ExpOp>(op) ? op->getOperand(0).getDefiningOp<SubOp>() : SubOp();
  if (!distance)
    return false;
  auto greatest =
      beforeBroadcasts(distance->getOperand(1)).getDefiningOp<ReduceMaxOp>();
  return greatest && greatest->getOperand(0) == distance->getOperand(0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value lower::flatten(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.getRank() == 1)
    return memref;
  int64_t n = type.getNumElements();
  auto flat = MemRefType::get({n}, type.getElementType());
  return memref::ReinterpretCastOp::create(b, loc, flat, memref, /*offset=*/0,
                                           ArrayRef<int64_t>{n},
                                           ArrayRef<int64_t>{1});
}

Value lower::loadElement(OpBuilder &b, Location loc, Type element, Value memref,
                         Value position) {
  Value x = memref::LoadOp::create(b, loc, memref, position);
  if (element.isInteger(1)) {
    Value zero = scalar::constant(b, loc, x.getType(), 0.0);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, zero);
  }
  if (isNarrowFloat(element))
    return scalar::fromBits(b, loc, x, element);
  Type compute = scalar::computeType(element);
  return compute == element ? x : arith::ExtFOp::create(b, loc, compute, x);
}

void lower::storeElement(OpBuilder &b, Location loc, Type element, Value scalar,
                         Value memref, Value position, bool isStreamed) {
  if (element.isInteger(1))
    scalar = arith::ExtUIOp::create(b, loc, b.getI8Type(), scalar);
  else if (isNarrowFloat(element))
    scalar = scalar::toBits(b, loc, scalar, element);
  else
    scalar = narrowed(b, loc, scalar, element);
  memref::StoreOp::create(b, loc, scalar, memref, position, isStreamed);
}

Value lower::neutral(OpBuilder &b, Location loc,
                     const LoopNest::Reduction &reduction) {
  ReductionOpInterface op = reduction.op;
  Type element = typeOf(op->getResult(0)).getElementType();
  return scalar::constant(b, loc, scalar::computeType(element),
                          op.getNeutral());
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

void ElementEmitter::enter(ValueRange newIvs, ArrayRef<int64_t> newSizes) {
  ivs.assign(newIvs.begin(), newIvs.end());
  sizes.assign(newSizes.begin(), newSizes.end());
  memo.clear();
}

Value ElementEmitter::expand(OpBuilder &b, AffineExpr expr) {
  constexpr auto noWrap = arith::IntegerOverflowFlags::nsw;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return indexConstant(b, loc, constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ivs[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = expand(b, binary.getLHS());
  Value rhs = expand(b, binary.getRHS());
  bool positive = rangeOf(binary.getLHS(), sizes).low >= 0;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, loc, lhs, rhs, noWrap);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, loc, lhs, rhs, noWrap);
  case AffineExprKind::FloorDiv:
    if (positive)
      return arith::DivUIOp::create(b, loc, lhs, rhs);
    return arith::FloorDivSIOp::create(b, loc, lhs, rhs);
  case AffineExprKind::CeilDiv:
    return arith::CeilDivSIOp::create(b, loc, lhs, rhs);
  default: {
    if (positive)
      return arith::RemUIOp::create(b, loc, lhs, rhs);
    // The remainder has the divisor's sign, which is positive.
    Value rest = arith::RemSIOp::create(b, loc, lhs, rhs);
    Value zero = indexConstant(b, loc, 0);
    Value negative =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, rest, zero);
    Value shifted = arith::AddIOp::create(b, loc, rest, rhs);
    return arith::SelectOp::create(b, loc, negative, shifted, rest);
  }
  }
}

Value ElementEmitter::expand(OpBuilder &b, ArrayRef<IndexGuard> guards) {
  Value all, zero = indexConstant(b, loc, 0);
  for (const IndexGuard &guard : guards) {
    Value holds = arith::CmpIOp::create(
        b, loc,
        guard.isEqual ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge,
        expand(b, guard.expr), zero);
    all = all ? arith::AndIOp::create(b, loc, all, holds) : holds;
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void ElementEmitter::bind(Value tensor, Leaf leaf) {
  leaves[tensor] = std::move(leaf);
}

void ElementEmitter::bind(Value tensor, Value memref) {
  RankedTensorType type = typeOf(tensor);
  memrefs[tensor] = memref;
  bind(tensor,
       [this, type, memref](OpBuilder &b, Location loc, const Place &place) {
         AffineExpr position = simplifyIndex(
             linearize(place.index, type.getShape(), b.getContext()), sizes);
         Value flat = memref;
         if (cast<MemRefType>(memref.getType()).getRank() != 1) {
           // Beside the memref, so that one loop body does not have many of
           // them.
           OpBuilder::InsertionGuard guard(b);
           b.setInsertionPointAfterValue(memref);
           flat = flatten(b, loc, memref);
         }
         return loadElement(b, loc, type.getElementType(), flat,
                            expand(b, position));
       });
}

Value ElementEmitter::at(OpBuilder &b, Value tensor,
                         ArrayRef<AffineExpr> index) {
  Place place;
  for (AffineExpr expr : index)
    place.index.push_back(simplifyIndex(expr, sizes));
  return emit(b, tensor, place);
}

Value ElementEmitter::at(OpBuilder &b, Value tensor) {
  SmallVector<AffineExpr> index = dimensions(b.getContext(), ivs.size());
  return at(b, tensor, index);
}

Value ElementEmitter::emit(OpBuilder &b, Value tensor, const Place &place) {
  for (auto &[known, value] : memo[tensor])
    if (known == place)
      return value;
  Value value = emitUncached(b, tensor, place);
  memo[tensor].push_back({place, value});
  return value;
}

Value ElementEmitter::emitLeaf(OpBuilder &b, const Leaf &leaf, Type compute,
                               const Place &place) {
  if (place.guards.empty())
    return leaf(b, loc, place);
  auto branch = scf::IfOp::create(b, loc, TypeRange{compute},
                                  expand(b, place.guards), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(b, loc, leaf(b, loc, place));
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(b, loc, scalar::constant(b, loc, compute, 0.0));
  return branch.getResult(0);
}

/// `x`, the element of `tensor` as it was computed, as a number of its type.
static Value ofItsType(OpBuilder &b, Location loc, Value x, Value tensor) {
  return usesFastMath(tensor.getDefiningOp())
             ? x
             : rounded(b, loc, x, typeOf(tensor).getElementType());
}

Value ElementEmitter::emitUncached(OpBuilder &b, Value tensor,
                                   const Place &place) {
  Type compute = scalar::computeType(typeOf(tensor).getElementType());
  if (auto leaf = leaves.find(tensor); leaf != leaves.end()) {
    Value x = emitLeaf(b, leaf->second, compute, place);
    // Arguments were rounded when they were stored; the others are sums.
    return isa<BlockArgument>(tensor) ? x : ofItsType(b, loc, x, tensor);
  }
  Operation *op = tensor.getDefiningOp();
  if (auto view = dyn_cast<ViewOpInterface>(op)) {
    Place source;
    SmallVector<IndexGuard> inside;
    auto fill = [&] {
      return scalar::constant(b, loc, compute, view.getFill());
    };
    if (!throughView(view, place, sizes, source, inside))
      return fill();
    Value x = emit(b, op->getOperand(0), source);
    if (inside.empty())
      return x;
    return scalar::select(b, loc, expand(b, inside), x, fill());
  }
  if (auto select = dyn_cast<SelectOp>(op)) {
    // Of what is concatenated, in loops over one piece of it.
    if (std::optional<bool> isFirst = isBelow(select->getOperand(0), place))
      return emit(b, select->getOperand(*isFirst ? 1 : 2), place);
    if (Value x = choosesReads ? emitChosen(b, select, place) : Value())
      return x;
  }
  if (auto pointwise = dyn_cast<PointwiseOpInterface>(op)) {
    SmallVector<Value> x;
    for (Value operand : op->getOperands())
      x.push_back(emit(b, operand, place));
    Value element = pointwise.emitScalar(b, loc, x);
    if (isWeight(op))
      if (auto power = element.getDefiningOp<math::ExpOp>())
        power.setFastmath(kDropsDenormals);
    return ofItsType(b, loc, element, tensor);
  }
  if (auto constant = dyn_cast<ConstantOp>(op))
    return scalar::constant(b, loc, compute, constant.getSplat());
  auto iota = cast<IotaOp>(op);
  Value i = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                       expand(b, place.index[iota.getDim()]));
  // Small indices are exact in f32, and a cast from it is less work.
  constexpr int64_t exact = 1 << 24;
  Type element = typeOf(tensor).getElementType();
  Type first =
      typeOf(tensor).getDimSize(iota.getDim()) <= exact ? compute : element;
  i = scalar::cast(b, loc, i, b.getI64Type(), first);
  return scalar::cast(b, loc, i, first, element);
}

void ElementEmitter::store(OpBuilder &b, Value scalar, Type element,
                           Value memref, AffineExpr offset, bool isStreamed) {
  Value flat = memref;
  if (cast<MemRefType>(memref.getType()).getRank() != 1) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(memref);
    flat = flatten(b, loc, memref);
  }
  storeElement(b, loc, element, scalar, flat,
               expand(b, simplifyIndex(offset, sizes)), isStreamed);
}

void ElementEmitter::storeInRows(OpBuilder &b, Value scalar,
                                 RankedTensorType type,
                                 ArrayRef<int64_t> stored, Value memref,
                                 ArrayRef<AffineExpr> index) {
  Type element = type.getElementType();
  AffineExpr offset = linearize(index, stored, b.getContext());
  store(b, scalar, element, memref, offset);
  if (stored == type.getShape())
    return;
  int64_t last = type.getShape().back() - 1;
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            expand(b, simplifyIndex(index.back(), sizes)),
                            indexConstant(b, loc, last));
  auto branch = scf::IfOp::create(b, loc, isLast);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  Value zero = scalar::constant(b, loc, scalar.getType(), 0.0);
  for (int64_t behind = 1; last + behind < stored.back(); ++behind)
    store(b, zero, element, memref, offset + behind);
}
