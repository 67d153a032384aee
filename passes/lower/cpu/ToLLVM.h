//===- ToLLVM.h - from the code of emitters to the LLVM dialect -----------===//
#ifndef TANDEM_PASSES_LOWER_CPU_TOLLVM_H
#define TANDEM_PASSES_LOWER_CPU_TOLLVM_H

#include "mlir/Pass/PassManager.h"

namespace tandem::lower::cpu {

/// Adds the passes that lower a module of functions of arith, math, scf, memref
/// and vector ops to the LLVM dialect. Functions' memrefs (static shapes only)
/// become bare pointers; f32 functions become polynomials, the rest calls of
/// libm.
void buildToLLVM(mlir::OpPassManager &pm);

} // namespace tandem::lower::cpu

#endif
