//===- HostCopies.h - when values leave for the host and come back --------===//
//
// A kernel that holds `to_host` or `to_device` alone is a copy. It runs beside
// the other kernels, as soon as what it reads is there and what it overwrites
// is free; its place in the order says how long the device keeps the bytes: up
// to a copy to the host, and from a copy from the host on.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_HOSTCOPIES_H
#define TANDEM_PASSES_PLAN_HOSTCOPIES_H

#include "passes/plan/InPlace.h"

#include "ir/HostCopy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// The copy that a kernel is; null for any other.
mlir::Operation *hostCopyOf(KernelOp kernel);

/// True if a kernel's result, or an argument, lies in the host's memory.
bool isOnHost(mlir::Value value);

} // namespace tandem

#endif
