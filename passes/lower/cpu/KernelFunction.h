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
mlir::FailureOr<Work> emitKernelBody(mlir::ModuleOp target, KernelOp kernel,
                                     llvm::StringRef name);

/// True but for branches, loops and copies, whose code no table chooses.
bool hasMethods(KernelOp kernel);

/// The row of a kernel that has methods and is a trial's (common/Trial.h): its
/// module gets a function in which it is asked where operands lie. Fails with a
/// diagnostic. `log` may be null.
mlir::FailureOr<ChosenMethod> chooseAlone(KernelOp kernel,
                                          const MethodQuestion &question);

/// The dialects that both write.
void loadDialectsOfCode(mlir::MLIRContext *context);

} // namespace tandem::lower::cpu

#endif
