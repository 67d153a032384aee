//===- Update.h - an optimizer as a program -------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_UPDATE_H
#define TANDEM_PASSES_PARTITION_UPDATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Builds @update behind `backward`: params that have a gradient, their
/// gradients, the optimizer's states; the new params, the new states. The
/// states are OPT.lr, and per param OPT.step:PARAM, OPT.m:PARAM and OPT.v:PARAM
/// (adam, adamw) or OPT.velocity:PARAM (momentum), all with their initial
/// values in the role. Fails, with an error at the module, for a spec
/// that is none (passes/partition/OptimizerSpec.h).
mlir::FailureOr<mlir::func::FuncOp> buildUpdate(mlir::ModuleOp module,
                                                mlir::func::FuncOp backward,
                                                llvm::StringRef spec);

} // namespace tandem

#endif
