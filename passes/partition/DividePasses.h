//===- DividePasses.h - the passes that divide joints ---------------------===//
//
// The part of the phase partition that choices are rehearsed with, on copies of
// the module. The phase itself is passes/pipelines/Pipelines.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_DIVIDEPASSES_H
#define TANDEM_PASSES_PARTITION_DIVIDEPASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace tandem {

/// Adds tandem-choose-saved of this `kind`.
void addChooseSaved(mlir::OpPassManager &passes, llvm::StringRef kind);

/// Adds what makes programs of a joint whose saved values are chosen.
void addDividePasses(mlir::OpPassManager &passes);

/// Runs the part of `partition` that divides joints, along the values that are
/// marked as saved. With a `kind` it first chooses these, as
/// tandem-choose-saved does.
mlir::LogicalResult rehearsePartition(mlir::ModuleOp module,
                                      llvm::StringRef kind = "");

} // namespace tandem

#endif
