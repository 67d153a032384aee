//===- Trial.h - a kernel alone, in a module that is thrown away ----------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_TRIAL_H
#define TANDEM_PASSES_LOWER_COMMON_TRIAL_H

#include "ir/Ops.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tandem::lower {

/// A copy of a kernel as the one op of a function, in a module for the target
/// of the kernel's. Tables are asked about it there, since their rows have to
/// find where operands lie, and the emitters' functions that say so write casts
/// of memory. No code of the kernel is written.
struct Trial {
  explicit Trial(KernelOp kernel);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel;
};

} // namespace tandem::lower

#endif
