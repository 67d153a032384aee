//===- ReplaceTagged.cpp - formulas in place of ops that are tagged -------===//
#include "passes/optimize/ReplaceTagged.h"

#include "ir/Tags.h"

using namespace mlir;
using namespace tandem;

bool tandem::replaceTagged(Operation *op,
                           llvm::function_ref<Expr(OpBuilder &)> formula) {
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  Expr y = formula(builder);
  if (!y)
    return false;
  Operation *made = before ? before->getNextNode() : &op->getBlock()->front();
  for (; made != op; made = made->getNextNode()) {
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      made->setDiscardableAttr(attribute.getName(), attribute.getValue());
    if (made->getResult(0) != y.value) {
      made->removeDiscardableAttr(kSaveAttr);
      made->removeDiscardableAttr(kOffloadAttr);
    }
  }
  op->getResult(0).replaceAllUsesWith(y);
  op->erase();
  return true;
}
