//===- ReadModule.h - a planned module as a manifest ----------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_READMODULE_H
#define TANDEM_TOOLS_SIMULATE_READMODULE_H

#include "runtime/artifact/Manifest.h"

#include "mlir/IR/BuiltinOps.h"

namespace tandem::simulate {

/// Returns what a simulation reads of a manifest, of a module at `plan`: no
/// code has been made, so there is no artifact to read. Mesh, stages, memory of
/// a step; of each program arguments, results, launches with their buffers; of
/// each kernel what an artifact would say (passes/lower/common/Kernels.h).
/// Fails where a value has no place.
Result<artifact::Manifest> manifestOf(mlir::ModuleOp planned);

} // namespace tandem::simulate

#endif
