//===- EmptyTensors.cpp - tensors without elements
//-------------------------===//
#include "ir/EmptyTensors.h"

#include "ir/Ops.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <limits>

using namespace mlir;
using namespace tandem;

bool tandem::isEmptyTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && llvm::is_contained(tensor.getShape(), 0);
}

bool tandem::areEmptyTensors(TypeRange types) {
  return !types.empty() && llvm::all_of(types, isEmptyTensor);
}

Value tandem::emptyConstant(OpBuilder &b, Location loc, Type type) {
  return ConstantOp::create(b, loc,
                            DenseElementsAttr::get(cast<RankedTensorType>(type),
                                                   ArrayRef<Attribute>()));
}

namespace {

/// What an op that has an empty operand or result means.
struct Meaning {
  OpBuilder &b;
  Operation *op;

  /// One value for each result; none if the op is to stay.
  SmallVector<Value> values() {
    if (areEmptyTensors(op->getResultTypes()))
      return each([&](Type type) { return empty(type); });
    auto cost = dyn_cast<CostOpInterface>(op);
    if (!cost || isa<CompositeOpInterface>(op))
      return {};
    // A sum over nothing; a product is one, of each operand.
    if (cost.getOpClass() == OpClass::Contraction || isa<TakeGradOp>(op))
      return each([&](Type type) { return splat(type, 0.0); });
    if (auto reduction = dyn_cast<ReductionOpInterface>(op))
      return each(
          [&](Type type) { return splat(type, reduction.getNeutral()); });
    if (auto view = dyn_cast<ViewOpInterface>(op))
      return each([&](Type type) { return splat(type, view.getFill()); });
    // No row is in the table.
    if (auto take = dyn_cast<TakeOp>(op))
      return each([&](Type type) {
        return splat(type, std::numeric_limits<double>::quiet_NaN());
      });
    if (auto scatter = dyn_cast<ScatterOp>(op))
      return {scatter.getTable()};
    return {};
  }

  SmallVector<Value> each(llvm::function_ref<Value(Type)> value) {
    return llvm::map_to_vector(op->getResultTypes(), [&](Type type) {
      return isEmptyTensor(type) ? empty(type) : value(type);
    });
  }
  Value empty(Type type) { return emptyConstant(b, op->getLoc(), type); }
  Value splat(Type type, TypedAttr number) {
    return ConstantOp::create(
        b, op->getLoc(),
        DenseElementsAttr::get(cast<RankedTensorType>(type),
                               ArrayRef<Attribute>(number)));
  }
  /// 0 instead of a NaN that the type does not have.
  Value splat(Type type, double number) {
    Type element = getElementTypeOrSelf(type);
    if (auto floatType = dyn_cast<FloatType>(element))
      return splat(type, FloatAttr::get(floatType, number));
    return splat(type, cast<TypedAttr>(b.getZeroAttr(element)));
  }
};

} // namespace

void tandem::foldEmptyTensors(func::FuncOp func) {
  SmallVector<Operation *> old;
  func.walk([&](Operation *op) {
    auto isEmpty = [](Value value) { return isEmptyTensor(value.getType()); };
    if (op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
        !isa<ConstantOp>(op) && isMemoryEffectFree(op) &&
        (llvm::any_of(op->getOperands(), isEmpty) ||
         llvm::any_of(op->getResults(), isEmpty)))
      old.push_back(op);
  });
  for (Operation *op : old) {
    OpBuilder b(op);
    SmallVector<Value> values = Meaning{b, op}.values();
    if (values.empty())
      continue;
    for (Value value : values)
      if (Operation *made = value.getDefiningOp();
          made && isa<ConstantOp>(made) && made->getBlock() == op->getBlock())
        for (NamedAttribute attribute : op->getDiscardableAttrs())
          if (!made->hasAttr(attribute.getName()))
            made->setDiscardableAttr(attribute.getName(), attribute.getValue());
    op->replaceAllUsesWith(values);
  }
  // Those whose results are used stay.
  for (Operation *op : llvm::reverse(old))
    if (isOpTriviallyDead(op))
      op->erase();
}
