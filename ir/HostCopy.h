//===- HostCopy.h - copies to the host's memory and back ------------------===//
//
// Apart from ir/Ops.h: no model has these ops, and only partition, plan and
// what follows know them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_HOSTCOPY_H
#define TANDEM_IR_HOSTCOPY_H

#include "ir/Ops.h"

#define GET_OP_CLASSES
#include "ir/ops/HostCopy.h.inc"

namespace tandem {

/// True for `to_host` and `to_device`.
inline bool isHostCopy(mlir::Operation *op) {
  return mlir::isa<ToHostOp, ToDeviceOp>(op);
}

} // namespace tandem

#endif
