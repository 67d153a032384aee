//===- tandem-llvm-opt.cpp - runs single passes on LLVM IR, for tests -----===//
//
// tandem-llvm-opt PIPELINE FILE: prints the module of FILE (- is the standard
// input) after the passes of PIPELINE, as `opt -passes=`, which may name the
// compiler's own. What passes ask of a target is of the module's triple.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/passes/Passes.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

/// That of the module's triple; null where it says none that LLVM has.
static std::unique_ptr<llvm::TargetMachine> machineOf(llvm::Module &module) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  std::string problem;
  const llvm::Triple &triple = module.getTargetTriple();
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, problem);
  return std::unique_ptr<llvm::TargetMachine>(
      target ? target->createTargetMachine(triple, "", "", {}, std::nullopt)
             : nullptr);
}

/// Fails with a message.
static llvm::Error run(llvm::Module &module, llvm::StringRef pipeline) {
  auto machine = machineOf(module);
  llvm::PassBuilder builder(machine.get());
  tandem::registerLlvmPasses(builder);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline))
    return error;
  passes.run(module, modules);
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(module, &stream))
    return llvm::createStringError("the passes left a broken module: " +
                                   problems);
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: tandem-llvm-opt PIPELINE FILE\n";
    return 2;
  }
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  auto module = llvm::parseIRFile(argv[2], problem, context);
  if (!module) {
    problem.print("tandem-llvm-opt", llvm::errs());
    return 1;
  }
  if (llvm::Error error = run(*module, argv[1])) {
    llvm::errs() << "tandem-llvm-opt: " << llvm::toString(std::move(error))
                 << '\n';
    return 1;
  }
  llvm::outs() << *module;
  return 0;
}
