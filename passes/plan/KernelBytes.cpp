//===- KernelBytes.cpp - what a kernel moves ------------------------------===//
#include "passes/plan/KernelBytes.h"

using namespace mlir;
using namespace tandem;

double tandem::bytesOf(Value value) {
  return static_cast<double>(byteSize(cast<RankedTensorType>(value.getType())));
}

double tandem::bytesRead(Value value) {
  double part = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<SliceOp>(user) ||
        (isa<TakeOp>(user) && use.getOperandNumber() == 0))
      part += bytesOf(user->getResult(0));
    else if (auto scatter = dyn_cast<ScatterOp>(user);
             scatter && use.get() == scatter.getTable())
      part += bytesOf(scatter.getUpdates());
    else if (auto view = dyn_cast<ViewOpInterface>(user); view && view.isFree())
      part += bytesRead(user->getResult(0));
    else
      return bytesOf(value);
  }
  return std::min(part, bytesOf(value));
}
