//===- Report.h - why values are saved or made again ----------------------===//
#ifndef TANDEM_PASSES_PARTITION_REPORT_H
#define TANDEM_PASSES_PARTITION_REPORT_H

#include "passes/partition/Programs.h"

namespace tandem {

/// Says in the module what is saved and which ops the backward repeats, with
/// predicted times and, of what is repeated, the reasons (ir/Report.h). What
/// the module says of a budget stays.
void reportPartition(mlir::ModuleOp module, const JointView &view,
                     const SavedValues &saved, const SavedNames &names,
                     llvm::ArrayRef<mlir::Operation *> repeated);

/// Says the same in remarks.
void remarkPartition(const JointView &view, const SavedValues &saved,
                     llvm::ArrayRef<mlir::Operation *> repeated);

/// Says which values that are to be offloaded stay on the device.
void remarkNotOffloaded(const JointView &view, const SavedValues &saved);

} // namespace tandem

#endif
