//===- KernelKeys.h - what a kernel's code follows from, as a hash --------===//
//
// Two kernels of one module share a function if what they have in common is
// equal (DistinctKernels). Their code follows from that, from the module's
// target, from the options of emission, and from the compiler; the key is a
// hash of these. So kernels of different models with one key have the same
// code.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_KERNELKEYS_H
#define TANDEM_COMPILER_EMIT_KERNELKEYS_H

#include "compiler/emit/KernelCache.h"

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// What code follows from beside the module.
struct CodeOptions {
  int effort = 2;         ///< for a processor, as CompileOptions has it
  bool emulation = false; ///< for a GPU, whether its bitcode is wanted
};

/// Gives the kernels of a module, whose functions are chosen, their keys, and
/// those that are in `cache` the facts of their code, so that none is written
/// for them. `cache` may be null.
void addKernelKeys(mlir::ModuleOp module, KernelCache *cache,
                   const CodeOptions &options);

/// Returns what `cache` (may be null) has for a kernel's function; null where
/// that has no key.
const CompiledKernel *keptCode(mlir::Operation *function, KernelCache *cache);

/// Fails where an op has a key already: code would be believed to be its.
Status expectNoKeys(mlir::ModuleOp module);

} // namespace tandem

#endif
