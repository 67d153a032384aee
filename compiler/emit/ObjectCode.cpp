//===- ObjectCode.cpp - from LLVM functions to a shared object ------------===//
#include "compiler/emit/ObjectCode.h"
#include "compiler/emit/Chunks.h"
#include "compiler/emit/Link.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"

using namespace mlir;
using namespace tandem;

static void setFunctionAttributes(llvm::Module &module, const CpuTarget &target,
                                  llvm::TargetMachine &machine) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.arch);
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // Without it LLVM prefers 256 bits on processors that have 512.
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false; // kernels are loops; SLP costs compile time
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

static Result<std::string> compileChunk(ModuleOp chunk,
                                        const CpuTarget &target) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(chunk, context, "tandem");
  if (!module)
    return Status::failed("kernels could not be translated to LLVM IR");
  auto machine = createMachine(target);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*module, target, *machine);
  optimize(*module, *machine);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return Status::unsupported("LLVM cannot emit objects for this target");
  codegen.run(*module);
  return object.str().str();
}

Result<std::string>
tandem::emitSharedObject(ModuleOp kernels,
                         const std::vector<std::string> &exported,
                         const CpuTarget &target, int threads) {
  std::vector<Chunk> chunks = chunksOf(kernels, exported);
  std::vector<std::string> objects(chunks.size());
  Status status = forEachIndex(chunks.size(), threads, [&](size_t i) {
    auto object = compileChunk(*chunks[i], target);
    if (object)
      objects[i] = std::move(*object);
    return object.status();
  });
  if (!status)
    return status;
  return linkSharedObject(objects);
}
