//===- PlannedScratch.cpp - the scratch memory that a plan counts on ------===//
#include "ir/PlannedScratch.h"

#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

std::optional<int64_t> tandem::plannedScratch(Operation *kernel) {
  auto bytes = kernel->getAttrOfType<IntegerAttr>(kScratchBytesAttr);
  return bytes ? std::optional(bytes.getInt()) : std::nullopt;
}

void tandem::setPlannedScratch(Operation *kernel, int64_t bytes) {
  kernel->setAttr(kScratchBytesAttr,
                  Builder(kernel->getContext()).getI64IntegerAttr(bytes));
}

LogicalResult tandem::verifyPlannedScratch(Operation *op,
                                           NamedAttribute attribute) {
  if (!isa<KernelOp>(op))
    return op->emitOpError()
           << "'" << kScratchBytesAttr << "' belongs on a kernel";
  auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
  if (bytes && bytes.getType().isInteger(64) && bytes.getInt() >= 0)
    return success();
  return op->emitOpError() << "expected '" << kScratchBytesAttr
                           << "' to be an i64 of at least 0, but got "
                           << attribute.getValue();
}
