//===- StampRanks.h - what the options say of ranks, in the module --------===//
#ifndef TANDEM_COMPILER_STAMPRANKS_H
#define TANDEM_COMPILER_STAMPRANKS_H

#include "compiler/Compile.h"

namespace tandem {

/// Puts the mesh, what is to be cut over its axes, and the stages of a pipeline
/// into the module.
Status stampRanks(mlir::ModuleOp module, const CompileOptions &options);

} // namespace tandem

#endif
