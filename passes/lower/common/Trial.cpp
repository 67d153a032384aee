//===- Trial.cpp - a kernel alone, in a module that is thrown away --------===//
#include "passes/lower/common/Trial.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

Trial::Trial(KernelOp original) {
  Location loc = original.getLoc();
  module = ModuleOp::create(loc, "trial");
  if (auto whole = original->getParentOfType<ModuleOp>())
    (*module)->setDiscardableAttrs(whole->getDiscardableAttrDictionary());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto func = func::FuncOp::create(
      b, loc, "trial", b.getFunctionType(original->getOperandTypes(), {}));
  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  kernel = cast<KernelOp>(b.clone(*original));
  kernel->setOperands(entry->getArguments());
  // A trial's may be of another method.
  kernel.removeScratchBytesAttr();
  func::ReturnOp::create(b, loc);
}
