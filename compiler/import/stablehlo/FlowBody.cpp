//===- FlowBody.cpp - regions of StableHLO that become regions ------------===//
#include "compiler/import/stablehlo/FlowBody.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

LogicalResult FlowBody::record(llvm::function_ref<Values()> make) {
  OpBuilder::InsertionGuard guard(node.builder());
  node.builder().setInsertionPointToEnd(&region.front());
  Values made = make();
  if (failed(made))
    return failure();
  types = llvm::to_vector(ValueRange(*made).getTypes());
  YieldOp::create(node.builder(), node.loc(), *made);
  return success();
}

/// As Region::isAncestor, among regions of which some have no op yet.
bool FlowBody::contains(Region *inner) {
  while (inner && inner != &region) {
    Operation *op = inner->getParentOp();
    inner = op ? op->getParentRegion() : nullptr;
  }
  return inner;
}

void FlowBody::collect(llvm::SetVector<Value> &used) {
  DenseMap<Operation *, Value> copies;
  region.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (contains(value.getParentRegion()))
        continue;
      auto constant = value.getDefiningOp<ConstantOp>();
      if (!constant) {
        used.insert(value);
        continue;
      }
      Value &copy = copies[constant];
      if (!copy) {
        OpBuilder first(value.getContext());
        first.setInsertionPointToStart(&region.front());
        copy = first.clone(*constant)->getResult(0);
      }
      operand.set(copy);
    }
  });
}

void FlowBody::take(ArrayRef<Value> outside) {
  for (Value value : outside) {
    Value inside = add(value.getType());
    value.replaceUsesWithIf(inside, [&](OpOperand &use) {
      return contains(use.getOwner()->getParentRegion());
    });
  }
}
