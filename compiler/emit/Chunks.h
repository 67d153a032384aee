//===- Chunks.h - kernels in pieces that are compiled apart ---------------===//
//
// Kernels are compiled one by one, each in an LLVM context of its own: several
// at a time, and the bytes depend on nothing but the input. A function that
// several kernels use is compiled in each. In a chunk the kernel alone and what
// is declared are visible from outside, and nothing has attributes of the
// dialect.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_CHUNKS_H
#define TANDEM_COMPILER_EMIT_CHUNKS_H

#include "runtime/artifact/Status.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem {

class KernelCache;
struct CompiledKernel;

using Chunk = mlir::OwningOpRef<mlir::ModuleOp>;

/// Copies the LLVM function `name`, with `tandem.kernel`, and what it uses into
/// a module of its own, where it is called `as`. Other functions with that
/// attribute are declared there, and their names added to `calls`. What the
/// copy is does not depend on what else is in `kernels`.
Chunk unitOf(mlir::Operation *kernels, mlir::SymbolTable &symbols,
             llvm::StringRef name, llvm::StringRef as,
             llvm::SmallVectorImpl<std::string> &calls);

/// A kernel's function, and what there is of it: code that was kept, or a
/// module to compile.
struct KernelUnit {
  mlir::LLVM::LLVMFuncOp function;
  const CompiledKernel *entry = nullptr;
  Chunk code;
};

/// The unit of the LLVM function `name` of `kernels`; where no code of it was
/// kept, its module is that of `unitOf`. Fails if there is no such function, or
/// it has no code.
Result<KernelUnit> keptOrUnitOf(mlir::Operation *kernels,
                                mlir::SymbolTable &symbols,
                                llvm::StringRef name, llvm::StringRef as,
                                KernelCache *cache,
                                llvm::SmallVectorImpl<std::string> &calls);

/// Calls `work` with 0 to `count - 1`, on so many threads (0: one for each
/// processor). Returns the failure of the smallest number, if any.
Status forEachIndex(size_t count, int threads,
                    const std::function<Status(size_t)> &work);

} // namespace tandem

#endif
