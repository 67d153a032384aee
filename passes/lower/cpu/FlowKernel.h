//===- FlowKernel.h - branches and loops as kernels that call kernels -----===//
//
// A kernel around a branch or a loop has one item: one thread runs the kernels
// of its regions one after the other. Each region is planned like a program;
// its memory, and the carries', is the kernel's scratch.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_FLOWKERNEL_H
#define TANDEM_PASSES_LOWER_CPU_FLOWKERNEL_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tandem::lower::cpu {

/// The branch or loop that a kernel is made of; null for any other kernel.
mlir::Operation *flowOf(KernelOp kernel);

/// Where a buffer of a region's kernel lies.
struct FlowBuffer {
  enum class In { Argument, Result, Arena } in = In::Arena;
  int64_t position = 0; ///< the number of the argument or result; bytes
};

/// A call of a kernel's function with all its items.
struct FlowStep {
  std::string function;
  int64_t items = 0, scratchBytes = 0;
  llvm::SmallVector<FlowBuffer> buffers; ///< as the kernel ABI has them
};

/// What a region became.
struct FlowSteps {
  llvm::SmallVector<FlowStep> steps;
  int64_t arenaBytes = 0;
};

/// Copies a region to a planned function `name` at the end of `module`: its
/// arguments and results are the function's. Fails with a diagnostic.
mlir::FailureOr<mlir::func::FuncOp>
planRegion(mlir::ModuleOp module, mlir::Region &region, llvm::StringRef name);

/// The buffers of a kernel of such a function. Fails with a diagnostic.
mlir::FailureOr<llvm::SmallVector<FlowBuffer>> flowBuffersOf(KernelOp kernel);

/// The scratch that the kernel of a branch or a loop needs.
int64_t flowScratchBytes(KernelOp kernel, llvm::ArrayRef<FlowSteps> regions);

/// Writes the body of `function`, which has the kernel ABI; the functions of
/// the steps are declared in the module around it.
void emitFlow(KernelOp kernel, llvm::ArrayRef<FlowSteps> regions,
              mlir::LLVM::LLVMFuncOp function);

} // namespace tandem::lower::cpu

#endif
