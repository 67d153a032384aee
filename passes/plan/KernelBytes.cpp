//===- KernelBytes.cpp - what a kernel moves ------------------------------===//
#include "passes/plan/KernelBytes.h"

using namespace mlir;
using namespace tandem;

int64_t tandem::bytesOf(Value value) {
  return byteSize(cast<RankedTensorType>(value.getType()));
}

int64_t tandem::bytesRead(Value value) {
  int64_t part = 0;
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
