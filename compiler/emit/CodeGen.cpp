//===- CodeGen.cpp - LLVM's pipelines, set up in one place ----------------===//
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/passes/Passes.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace tandem;

namespace {
/// The analyses that a pipeline needs, in the order that their destruction
/// needs.
struct Analyses {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;

  explicit Analyses(llvm::PassBuilder &builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
  }
};
} // namespace

Status tandem::runPasses(llvm::Module &module, llvm::TargetMachine *machine,
                         llvm::StringRef pipeline,
                         const llvm::PipelineTuningOptions &tuning,
                         llvm::StringRef skipped) {
  llvm::PassInstrumentationCallbacks callbacks;
  if (!skipped.empty())
    callbacks.registerShouldRunOptionalPassCallback(
        [&](llvm::StringRef pass, llvm::Any) { return pass != skipped; });
  llvm::PassBuilder builder(machine, tuning, std::nullopt, &callbacks);
  registerLlvmPasses(builder);
  Analyses analyses(builder);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline))
    return Status::failed(llvm::toString(std::move(error)));
  passes.run(module, analyses.modules);
  return Status::success();
}

Result<std::string> tandem::emitFile(llvm::Module &module,
                                     llvm::TargetMachine &machine,
                                     llvm::CodeGenFileType type) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, stream, nullptr, type))
    return Status::unsupported("LLVM cannot emit code for this target");
  codegen.run(module);
  return bytes.str().str();
}
