//===- CustomVjp.cpp - custom gradients give way to their forwards --------===//
#include "passes/autodiff/CustomVjp.h"

#include "ir/Ops.h"
#include "ir/Tags.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tandem;

/// The input or output of `op` that its saved result `i` is; null if it is
/// none.
static Value sourceOfSaved(CustomVjpOp op, unsigned i) {
  Block &forward = op.getForward().front();
  ValueRange yielded = forward.getTerminator()->getOperands();
  Value saved = yielded[i];
  if (auto argument = dyn_cast<BlockArgument>(saved))
    return op.getInputs()[argument.getArgNumber()];
  for (unsigned output = 0; output < op.numOutputs(); ++output)
    if (yielded[output] == saved)
      return op.getResult(output);
  return {};
}

DenseSet<Value> tandem::resolveSavedValues(func::FuncOp func,
                                           Operation *lastForward) {
  DenseSet<OpOperand *> uncheckedUses;
  DenseSet<Value> unchecked;
  for (auto op : func.getOps<CustomVjpOp>()) {
    unsigned first = op->getNumResults() - op.numSaved();
    for (unsigned i = first, n = op->getNumResults(); i < n; ++i) {
      Value source = sourceOfSaved(op, i);
      if (!source)
        continue;
      if (llvm::is_contained(op.getUnchecked(), i - first)) {
        unchecked.insert(source);
        for (OpOperand &use : op->getResult(i).getUses())
          uncheckedUses.insert(&use);
      }
      op->getResult(i).replaceAllUsesWith(source);
    }
  }
  DenseSet<Value> kept;
  for (Value value : unchecked)
    if (llvm::all_of(value.getUses(), [&](OpOperand &use) {
          Operation *user = use.getOwner();
          bool isBackward = !lastForward || lastForward->isBeforeInBlock(user);
          return !isBackward || user->hasTrait<OpTrait::IsTerminator>() ||
                 uncheckedUses.contains(&use);
        }))
      kept.insert(value);
  return kept;
}

void tandem::inlineCustomVjps(func::FuncOp func) {
  // In regions of branches and loops too.
  SmallVector<CustomVjpOp> ops;
  func.walk([&](CustomVjpOp op) { ops.push_back(op); });
  for (CustomVjpOp op : ops) {
    OpBuilder builder(op);
    IRMapping map;
    Block &forward = op.getForward().front();
    map.map(forward.getArguments(), op.getInputs());
    for (Operation &inner : forward.without_terminator()) {
      Operation *made = builder.clone(inner, map);
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        if (!isTag(attribute.getName()))
          made->setDiscardableAttr(attribute.getName(), attribute.getValue());
      addTags(made, op);
    }
    for (auto [result, value] : llvm::zip_equal(
             op.getResults(), forward.getTerminator()->getOperands()))
      result.replaceAllUsesWith(map.lookupOrDefault(value));
    op.erase();
  }
}
