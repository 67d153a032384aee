//===- KernelFunction.h - the function around a kernel's code -------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_KERNELFUNCTION_H
#define TANDEM_PASSES_LOWER_CPU_KERNELFUNCTION_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cpu/KernelEmitter.h"

#include "mlir/IR/BuiltinOps.h"

namespace tandem::lower::cpu {

/// The name of the function that has the code of kernel function `name`.
std::string bodyName(llvm::StringRef name);

/// Writes that function at the end of `target`: its parameters are the buffers
/// of the kernel, the range of items, and scratch. Fails with a diagnostic.
/// `log` gets the methods that there were to choose from.
mlir::FailureOr<Work> emitKernelBody(mlir::ModuleOp target, KernelOp kernel,
                                     llvm::StringRef name,
                                     MethodLog *log = nullptr);

} // namespace tandem::lower::cpu

#endif
