//===- CodeGen.h - LLVM's pipelines, set up in one place ------------------===//
//
// Each call works on the module and the machine that it is given, and on
// nothing else: threads with modules of their own may call at the same time.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_CODEGEN_H
#define TANDEM_COMPILER_EMIT_CODEGEN_H

#include "runtime/artifact/Status.h"

#include "mlir/Support/Timing.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

#include <string>

namespace tandem {

/// Times a step of emission, on any thread, under `timing`; nothing where that
/// is null.
inline mlir::TimingScope timed(mlir::TimingScope *timing, const char *step) {
  return timing ? timing->nest(llvm::StringRef(step)) : mlir::TimingScope();
}

/// Runs the passes of `pipeline` (as `opt -passes=`), which may name the
/// compiler's own (passes/Passes.h), but for the one whose class is `skipped`:
/// LLVM's default pipelines are taken as a whole. `machine` may be null.
Status runPasses(llvm::Module &module, llvm::TargetMachine *machine,
                 llvm::StringRef pipeline,
                 const llvm::PipelineTuningOptions &tuning = {},
                 llvm::StringRef skipped = "");

/// Returns the object file or assembly text of the module.
Result<std::string> emitFile(llvm::Module &module, llvm::TargetMachine &machine,
                             llvm::CodeGenFileType type);

} // namespace tandem

#endif
