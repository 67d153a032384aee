//===- Disassemble.h - the code of kernels as text ------------------------===//
#ifndef TANDEM_COMPILER_EMIT_DISASSEMBLE_H
#define TANDEM_COMPILER_EMIT_DISASSEMBLE_H

#include "compiler/Target.h"

#include "mlir/IR/SymbolTable.h"

#include <map>
#include <span>
#include <string>

namespace tandem {

/// Returns the instructions of a shared object for `target`, by the function
/// that it exports: up to the next one, so that a kernel has what it alone
/// calls. Addresses count from the function's begin, and what a jump goes to
/// has its address in front of it. The object may be anybody's. Fails with
/// Unsupported where it is for another kind of processor than the host's.
Result<std::map<std::string, std::string>>
disassemble(std::span<const std::byte> object, const CpuTarget &target);

/// Returns the LLVM IR of a kernel as LLVM's passes get it: of the function
/// `name` of `kernels`, whose symbols are `symbols`, and what it uses. Empty
/// where the function has no code here (KernelCache.h).
Result<std::string> llvmIrOf(mlir::ModuleOp kernels, mlir::SymbolTable &symbols,
                             llvm::StringRef name);

} // namespace tandem

#endif
