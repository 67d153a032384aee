//===- Regions.h - which regions are worth computing again ----------------===//
#ifndef TANDEM_PASSES_PARTITION_REGIONS_H
#define TANDEM_PASSES_PARTITION_REGIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Makes the programs of a module at `optimize`; says nothing.
using MakePrograms = llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp)>;

/// Takes the regions out of the joint of `module` with which the planned peak
/// of a step would be above that without them, and says so at each: what a
/// region keeps can be more than what it need not save. Plans copies of the
/// module: two where no region is too much, else a number that grows with the
/// logarithm of the number of regions for each that is.
void dropRegionsThatCost(mlir::ModuleOp module, MakePrograms makePrograms);

} // namespace tandem

#endif
