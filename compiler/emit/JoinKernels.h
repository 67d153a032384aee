//===- JoinKernels.h - one code object for several sizes ------------------===//
#ifndef TANDEM_COMPILER_EMIT_JOINKERNELS_H
#define TANDEM_COMPILER_EMIT_JOINKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Brings the kernels of `other` into the code of `module`; both are lowered
/// for one target. What is equal but for its name is there once. The launches
/// of `other` then name kernels of `module`.
void joinKernels(mlir::ModuleOp module, mlir::ModuleOp other);

} // namespace tandem

#endif
