//===- ObjectCode.cpp - from LLVM functions to a shared object ------------===//
#include "compiler/emit/ObjectCode.h"
#include "compiler/emit/Chunks.h"
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/Link.h"
#include "compiler/emit/Listener.h"
#include "compiler/emit/passes/Passes.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"

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
    // Without a frame pointer stacks are aligned to 16 bytes: by the time that
    // spills of wider vectors ask for more it is too late to reserve one. They
    // would cross lines of the cache, and some of them pages.
    if (target.vectorBits > 128)
      function.addFnAttr("frame-pointer", "all");
  }
}

static Result<std::string> compileChunk(ModuleOp chunk, const CpuTarget &target,
                                        TimingScope *timing) {
  llvm::LLVMContext context;
  TimingScope step = timed(timing, "translate to LLVM IR");
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<Listener>(errors));
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(chunk, context, "tandem");
  if (!module)
    return Status::failed("kernels could not be translated to LLVM IR");
  auto machine = createMachine(target);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*module, target, *machine);
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false; // kernels are loops; SLP costs compile time
  step = timed(timing, "LLVM's passes");
  if (Status s = runPasses(*module, machine.get(), kCpuPipeline, tuning); !s)
    return s;
  step = timed(timing, "machine code");
  auto object = emitFile(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!errors.empty())
    return Status::failed("kernels could not be compiled: " + errors);
  return object;
}

Result<std::string> tandem::emitSharedObject(
    ModuleOp kernels, const std::vector<std::string> &exported,
    const CpuTarget &target, int threads, TimingScope *timing) {
  std::vector<Chunk> chunks = chunksOf(kernels, exported);
  std::vector<std::string> objects(chunks.size());
  Status status = forEachIndex(chunks.size(), threads, [&](size_t i) {
    auto object = compileChunk(*chunks[i], target, timing);
    if (object)
      objects[i] = std::move(*object);
    return object.status();
  });
  if (!status)
    return status;
  TimingScope link = timed(timing, "link");
  return linkSharedObject(objects);
}
